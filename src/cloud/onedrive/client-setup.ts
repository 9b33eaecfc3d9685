/** How to come to an app registration at Microsoft, step by step, and what can be checked of it. */

import { asTidemarkError } from '../../base/errors.ts'
import { isLoopback } from '../../base/loopback.ts'
import {
  type ClientSetup,
  checkRedirect,
  ENTER_STEP,
  type ServiceCalls,
  type SetupPlace,
  type SetupStep,
  type StepCheck,
  unsafeRedirect,
} from '../client-setup.ts'
import type { OAuthClient } from '../oauth.ts'
import { ONEDRIVE_SCOPES, signInByDevice } from './auth.ts'

const REDIRECT_STEP = 'redirect'
const ID = /^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/i

export const oneDriveClientSetup: ClientSetup = {
  provider: 'microsoft',
  intro:
    'Microsoft lets a program in only as an app that is registered. It costs nothing, takes some five minutes, and is done once.',
  fields: { id: { label: 'Application (client) ID', example: '00000000-0000-0000-0000-000000000000' } },
  keys: { section: 'onedrive', hasSecret: false },
  steps: oneDriveSteps,
  configured({ onedrive }) {
    const clientId = onedrive?.client_id
    return clientId === undefined ? undefined : { key: 'onedrive.client_id', client: { clientId } }
  },
  formProblems,
  async check(calls, { client, redirects, pkce }) {
    const checks = [await checkApp(calls, client)]
    const unsafe = unsafeRedirect(REDIRECT_STEP, redirects)
    const [redirectUri] = redirects
    if (unsafe) checks.push(unsafe)
    else if (redirectUri !== undefined) {
      const { auth_url: authUrl } = calls.config.onedrive
      const scopes = ONEDRIVE_SCOPES.readonly
      const { clientId } = client
      checks.push(
        await checkRedirect(calls, { step: REDIRECT_STEP, authUrl, redirectUri, scopes, clientId, pkce }),
      )
    }
    return checks
  },
}

function formProblems({ clientId }: OAuthClient): StepCheck[] {
  if (ID.test(clientId)) return []
  return [
    {
      step: ENTER_STEP,
      state: 'failed',
      text: 'This is not an application ID of Microsoft.',
      hint: 'It has the form 00000000-0000-0000-0000-000000000000 and stands on the "Overview" of the registration, as "Application (client) ID": not the object ID, nor the one of the directory.',
    },
  ]
}

/** A code for a device is given to any app that exists and is for all accounts. Nobody types it, and it ends. */
async function checkApp(calls: ServiceCalls, client: OAuthClient): Promise<StepCheck> {
  const { config, fetch, clock, signal } = calls
  const { token_url: tokenUrl, device_url: deviceUrl } = config.onedrive
  try {
    await signInByDevice({ fetch, clock, signal, tokenUrl, deviceUrl }, { ...client, access: 'readonly' })
    return { step: ENTER_STEP, state: 'ok', text: 'Microsoft knows the app.' }
  } catch (thrown) {
    const { kind, code, message } = asTidemarkError(thrown)
    if (kind === 'bug') throw thrown
    if (code === 'invalid_client' || code === 'unauthorized_client') {
      return {
        step: ENTER_STEP,
        state: 'failed',
        text: 'Microsoft does not know this app.',
        hint: 'Copy the "Application (client) ID" from the "Overview" of the registration. A new one can take some minutes to be known.',
      }
    }
    if (code === 'invalid_request') {
      return {
        step: 'accounts',
        state: 'failed',
        text: 'Microsoft does not let this app in for all kinds of accounts.',
        hint: 'Under "Authentication", the supported accounts must be those of any directory and personal ones.',
      }
    }
    return { step: ENTER_STEP, state: 'unknown', text: `It could not be checked: ${message}` }
  }
}

function oneDriveSteps({ redirects }: SetupPlace): SetupStep[] {
  const isHere = redirects.every((one) => isLoopback(new URL(one).hostname))
  return [
    {
      id: 'app',
      title: 'Register an app',
      texts: [
        'Under "App registrations" choose "New registration". Its name is what you will be asked about.',
      ],
      links: [
        {
          text: 'App registrations',
          url: 'https://entra.microsoft.com/#view/Microsoft_AAD_RegisteredApps/ApplicationsListBlade',
        },
      ],
      copies: [],
    },
    {
      id: 'accounts',
      title: 'Let all kinds of accounts in',
      texts: [
        'As supported account types choose "Accounts in any organizational directory and personal Microsoft accounts".',
      ],
      links: [],
      copies: [],
    },
    {
      id: REDIRECT_STEP,
      title: 'Say where the browser is sent back to',
      texts: [
        `As the platform choose "Public client/native (mobile & desktop)", and add these${isHere ? '; the port need not be named' : ''}:`,
      ],
      links: [],
      copies: [...new Set(['http://localhost', ...redirects.map(asRegistered)])].map((text) => ({
        label: 'Redirect address',
        text,
      })),
    },
    {
      id: 'flows',
      title: 'Allow public client flows',
      texts: ['Under "Authentication" switch "Allow public client flows" on, and save.'],
      links: [],
      copies: [],
    },
    {
      id: ENTER_STEP,
      title: 'Enter its ID here',
      texts: ['It stands on the "Overview" as "Application (client) ID". There is no secret.'],
      links: [],
      copies: [],
    },
  ]
}

/** Of all addresses, Microsoft lets only this machine's have any port. */
function asRegistered(redirect: string): string {
  const url = new URL(redirect)
  if (url.hostname === 'localhost') url.port = ''
  return url.href
}
