/** A language model in the simulated cloud, as OpenAI, Anthropic and Google have them. */
import type { SimService } from '../service.ts'
import type { ModelMode, Models, ModelsOptions } from './models.ts'

export const models: SimService<ModelsOptions, Models> = {
  title: 'language model',
  hasAccounts: false,
  faultProfiles: {},
  flags: [
    {
      flag: '--language-model <name>',
      about: 'the name of the simulated language model',
      takes: 'text',
    },
    {
      flag: '--model-mode <mode>',
      about: 'how it answers: sensibly, or obeying every order that it reads',
      takes: ['sensible', 'obedient'],
      byDefault: 'sensible',
    },
  ],
  fromFlags: (_accounts, { languageModel, modelMode }) => ({
    ...(languageModel !== undefined && { models: [String(languageModel)] }),
    ...(modelMode !== undefined && { mode: modelMode as ModelMode }),
  }),
  start: async (kernel, options) => new (await import('./models.ts')).Models(kernel, options),
}
