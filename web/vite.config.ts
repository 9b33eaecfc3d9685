import { defineConfig } from 'vite'

/** Where `npx vite web`, which shows changes as they are made, finds the API. */
const API_ORIGIN = process.env.TIDEMARK_ORIGIN ?? 'http://127.0.0.1:7070'

// biome-ignore lint/style/noDefaultExport: vite takes its configuration this way
export default defineConfig({
  root: import.meta.dirname,
  base: '/',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: 'es2022',
    // Everything in files of its own: the content security policy allows nothing inline, and no data: fonts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    manifest: true,
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        // What most pages show is one file: each for itself would be a request each before the first page is there.
        codeSplitting: {
          groups: [
            { name: 'components', test: /[\\/]web[\\/]src[\\/]/, minShareCount: 4, maxModuleSize: 20_000 },
          ],
        },
      },
    },
  },
  server: { proxy: { '/api': API_ORIGIN } },
})
