/** How language models are reached, what they cost, and what they may cost. */
import { z } from 'zod'
import { isLoopback } from '../../base/loopback.ts'
import {
  about,
  choice,
  defineSection,
  protocolOf,
  type SectionValues,
  secretText,
  text,
  whole,
} from '../../config/section.ts'

export const PROVIDERS = ['off', 'openai-compatible', 'anthropic', 'google'] as const

const PRICES_MAX = 50

const amount = z.number().min(0).max(1e6)
const price = z
  .strictObject({ model: z.string().min(1), input: amount, output: amount })
  .register(about, { allowed: 'an entry with model, input and output' })

/** Mail and the key go there: in the clear only on this machine. */
const modelUrl = z
  .string()
  .refine(
    (address) =>
      protocolOf(address) === 'https:' ||
      (protocolOf(address) === 'http:' && isLoopback(new URL(address).hostname)),
  )

export const modelsSection = defineSection('models', {
  provider: choice(
    PROVIDERS,
    'off',
    'who runs the language models; Ollama and llama.cpp are "openai-compatible"',
  ),
  base_url: modelUrl.optional().register(about, {
    allowed: 'an https:// address; http:// only of this machine',
    purpose: "where they are, such as http://127.0.0.1:11434/v1; the provider's own address otherwise",
  }),
  api_key: secretText('what the provider is asked with'),
  model: text('the model that is asked where none is named for the purpose'),
  classify_model: text('the model that sorts mail'),
  draft_model: text('the model that writes drafts'),
  context_model: text('the model that looks for what a draft may lean on'),
  agent_model: text('the model that runs agents'),
  json: choice(
    ['schema', 'object', 'none'],
    'schema',
    'how it is asked for JSON, for servers that do not know schemas, or not even JSON',
  ),
  input_price: money(0, 'what a million tokens of a prompt cost, in any currency'),
  output_price: money(0, 'what a million tokens of an answer cost, in the same currency'),
  prices: z
    .array(price)
    .max(PRICES_MAX)
    .default([])
    .register(about, {
      allowed: `a list of up to ${PRICES_MAX} entries such as { model = "small", input = 0.15, output = 0.6 }`,
      purpose: 'the prices of single models',
    }),
  day_cost: money(
    1,
    'what a user may cost on a day, over all their mailboxes, in the same currency; 0: only the tokens are limited',
  ),
  day_tokens: whole(
    { min: 0, max: 1_000_000_000 },
    2_000_000,
    'how many tokens a user may use on a day, over all their mailboxes; 0: only the cost is limited',
  ),
  timeout_seconds: whole({ min: 1, max: 300 }, 90, 'how long an answer is awaited'),
  max_tokens: whole({ min: 64, max: 100_000 }, 2_048, 'how long an answer may be'),
  keep_prompts: choice(
    ['no', 'sealed'],
    'no',
    'whether what was asked and answered is kept, encrypted, with the log of calls',
  ),
  keep_calls_days: whole({ min: 1, max: 3_650 }, 90, 'how long the log of calls is kept'),
})

export type ModelsSettings = SectionValues<typeof modelsSection>

declare module '../../config/settings.ts' {
  interface Config {
    models: ModelsSettings
  }
}

export type ModelPurpose = 'classify' | 'draft' | 'context' | 'agent'

/** Undefined: none is configured. */
export function modelFor(settings: ModelsSettings, purpose: ModelPurpose): string | undefined {
  if (settings.provider === 'off') return undefined
  return settings[`${purpose}_model`] ?? settings.model
}

/** Money for a million tokens; the same number is millionths of it for one token. */
export type Price = { input: number; output: number }

/** One without a price costs as the dearest that has one: what is not listed is not free. */
export function priceOf(settings: ModelsSettings, model: string): Price {
  const { prices, input_price: input, output_price: output } = settings
  const own = prices.find((one) => one.model === model)
  if (own || input > 0 || output > 0 || prices.length === 0) return own ?? { input, output }
  return {
    input: Math.max(...prices.map((one) => one.input)),
    output: Math.max(...prices.map((one) => one.output)),
  }
}

/** It has a price, or is somebody else's machine and nobody said what it costs. */
export function mayCost(settings: ModelsSettings, model: string): boolean {
  const { input, output } = priceOf(settings, model)
  const isPriced = settings.prices.some((one) => one.model === model)
  return input > 0 || output > 0 || !(isPriced || isHere(settings))
}

function isHere({ base_url }: ModelsSettings): boolean {
  return base_url !== undefined && isLoopback(new URL(base_url).hostname)
}

/** Those that the settings name, for a purpose or with a price: no others are asked, whoever wants them. */
export function isConfigured(settings: ModelsSettings, model: string): boolean {
  const { model: all, classify_model, draft_model, context_model, agent_model, prices } = settings
  const named = [all, classify_model, draft_model, context_model, agent_model]
  return named.includes(model) || prices.some((one) => one.model === model)
}

export type ModelsFinding = { level: 'ok' | 'warning' | 'problem'; text: string; hint?: string }

/** What can be said of the settings without asking anybody. */
export function lookAtModels(settings: ModelsSettings): ModelsFinding[] {
  const { provider, api_key, model, prices, input_price, output_price } = settings
  if (provider === 'off') {
    return [{ level: 'ok', text: 'none is configured: mail is sorted without one, and drafts wait' }]
  }
  const named = [model, settings.classify_model, settings.draft_model].filter((one) => one !== undefined)
  if (named.length === 0) {
    const hint = 'Set models.model.'
    return [{ level: 'problem', text: `${provider} is configured, but no model`, hint }]
  }
  if (api_key === undefined && provider !== 'openai-compatible') {
    const hint = 'Set models.api_key, or TIDEMARK_MODELS_API_KEY.'
    return [{ level: 'problem', text: `there is no key for ${provider}`, hint }]
  }
  if (!isHere(settings) && input_price === 0 && output_price === 0 && prices.length === 0) {
    const text = `${provider} has no prices: what it costs is not counted, only its tokens are`
    return [{ level: 'warning', text, hint: 'Set models.input_price and models.output_price.' }]
  }
  return [{ level: 'ok', text: `${provider} is configured, with ${[...new Set(named)].join(', ')}` }]
}

function money(fallback: number, purpose: string) {
  const allowed = 'a number from 0 up, such as 0.15'
  return amount.default(fallback).register(about, { allowed, purpose })
}
