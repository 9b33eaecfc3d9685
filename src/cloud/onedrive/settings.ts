/** How OneDrive is reached. */
import { defineSection, type SectionValues, text, url, whole } from '../../config/section.ts'

const MICROSOFT = 'https://login.microsoftonline.com/common/oauth2/v2.0'

export const onedriveSection = defineSection('onedrive', {
  requests_per_second_start: whole({ min: 1, max: 10_000 }, 100, 'requests a second to begin with'),
  requests_per_second_max: whole({ min: 1, max: 10_000 }, 200, 'requests a second at most'),
  client_id: text('the client id of your app registration at Microsoft'),
  api_url: url('https://graph.microsoft.com/v1.0', 'where Microsoft Graph is'),
  auth_url: url(`${MICROSOFT}/authorize`, 'where accounts are connected'),
  token_url: url(`${MICROSOFT}/token`, 'where tokens come from'),
  device_url: url(`${MICROSOFT}/devicecode`, 'where codes for a sign-in on another device come from'),
})

declare module '../../config/settings.ts' {
  interface Config {
    onedrive: SectionValues<typeof onedriveSection>
  }
}
