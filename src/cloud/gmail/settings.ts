/** How Gmail is reached. */
import { defineSection, type SectionValues, secretText, text, url, whole } from '../../config/section.ts'

export const gmailSection = defineSection('gmail', {
  units_per_minute: whole(
    { min: 60, max: 1_000_000_000 },
    6_000,
    'quota units a minute for each account: 6000 for new projects, 15000 for those of before May 2026',
  ),
  price_of_get: whole({ min: 1, max: 1_000 }, 20, 'units that reading a message costs: 5 for old projects'),
  requests_per_second_start: whole({ min: 1, max: 10_000 }, 4, 'requests a second to begin with'),
  requests_per_second_max: whole({ min: 1, max: 10_000 }, 16, 'requests a second at most'),
  workers_start: whole({ min: 1, max: 256 }, 8, 'batches at work for an account to begin with'),
  workers_max: whole({ min: 1, max: 256 }, 32, 'batches at work for an account at most'),
  client_id: text('the OAuth client id of your Google Cloud project'),
  client_secret: secretText('its client secret'),
  api_url: url('https://gmail.googleapis.com', 'where the Gmail API is'),
  auth_url: url('https://accounts.google.com/o/oauth2/v2/auth', 'where accounts are connected'),
  token_url: url('https://oauth2.googleapis.com/token', 'where tokens come from'),
  revoke_url: url('https://oauth2.googleapis.com/revoke', 'where tokens are given back'),
})

declare module '../../config/settings.ts' {
  interface Config {
    gmail: SectionValues<typeof gmailSection>
  }
}
