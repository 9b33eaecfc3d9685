/**
 * The embedding model that comes with this package, inside another npm package: which files, with which hashes, and
 * how its output becomes a vector. See docs/adr/0021-embedded-model.md for why this one.
 */
export const BUILTIN_MODEL = {
  id: 'bge-small-en-v1.5-q8',
  dims: 384,
  /** Of the evaluation set, no right answer was below. */
  chance: 0.55,
  /** What the model was trained for; more is cut off. */
  tokensMax: 512,
  /** Below the folder of the package `embedding-model`. */
  folder: 'model/Xenova/bge-small-en-v1.5',
  files: {
    weights: {
      path: 'onnx/model_quantized.onnx',
      sha256: '6c9c6101a956d62dfb5e7190c538226c0c5bb9cb27b651234b6df063ee7dbfe4',
    },
    tokenizer: {
      path: 'tokenizer.json',
      sha256: 'd241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66',
    },
  },
  /** Of the numbers for each token: the first token's, or the mean of all. */
  pooling: 'first' as 'first' | 'mean',
} as const
