/** The version of this Tidemark, from its package. */
import packageJson from '../../package.json' with { type: 'json' }

export const version: string = packageJson.version
