/** How Google Drive is reached. Its section is not called after the app of the same name, which has one of its own. */
import { defineSection, type SectionValues, secretText, text, url, whole } from '../../config/section.ts'

export const googleDriveSection = defineSection('google_drive', {
  units_per_minute: whole(
    { min: 60, max: 1_000_000_000 },
    325_000,
    'quota units a minute for each account: to read costs 5, to list 100, to download 200',
  ),
  workers_max: whole({ min: 1, max: 256 }, 8, 'documents at work for an account at most'),
  client_id: text('the OAuth client id of your Google Cloud project'),
  client_secret: secretText('its client secret'),
  api_url: url('https://www.googleapis.com', 'where the Drive API is'),
  auth_url: url('https://accounts.google.com/o/oauth2/v2/auth', 'where accounts are connected'),
  token_url: url('https://oauth2.googleapis.com/token', 'where tokens come from'),
  revoke_url: url('https://oauth2.googleapis.com/revoke', 'where tokens are given back'),
})

declare module '../../config/settings.ts' {
  interface Config {
    google_drive: SectionValues<typeof googleDriveSection>
  }
}
