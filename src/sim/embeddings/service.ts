/** An endpoint for embeddings in the simulated cloud, as OpenAI and Ollama have one. */
import type { SimService } from '../service.ts'
import type { Embeddings, EmbeddingsOptions } from './embeddings.ts'

export const embeddings: SimService<EmbeddingsOptions, Embeddings> = {
  title: 'embeddings endpoint',
  hasAccounts: false,
  faultProfiles: {},
  flags: [
    {
      flag: '--embedding-model <name>',
      about: 'the model that the embeddings endpoint has',
      takes: 'text',
    },
  ],
  fromFlags: (_accounts, { embeddingModel }) =>
    embeddingModel === undefined ? {} : { models: { [String(embeddingModel)]: 256 } },
  start: async (kernel, options) => new (await import('./embeddings.ts')).Embeddings(kernel, options),
}
