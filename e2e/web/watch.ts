/**
 * Whatever mail must not do, seen from all sides: marks set by a script, dialogs, new windows, a page that is led
 * elsewhere, requests that leave the site, and what a canary server on this machine hears.
 */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { BrowserContext, Page } from 'playwright-core'

export type Heard = { path: string; referer: string | undefined }

export class Canary {
  readonly heard: Heard[] = []
  readonly #server: Server
  readonly #stage: Map<string, string>

  private constructor(server: Server, stage: Map<string, string>) {
    this.#server = server
    this.#stage = stage
  }

  static async start(): Promise<Canary> {
    const stage = new Map<string, string>()
    const server = createServer((request, response) => {
      const path = request.url ?? ''
      response.setHeader('content-type', 'text/html; charset=utf-8')
      // What is put on the stage is asked for by the test itself.
      if (!stage.has(path)) canary.heard.push({ path, referer: request.headers.referer })
      response.end(stage.get(path) ?? '<title>canary</title>')
    })
    const canary = new Canary(server, stage)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return canary
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** A page without any protection, at this address. */
  show(path: string, html: string): string {
    this.#stage.set(path, html)
    return this.url + path
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

export type Watch = {
  /** Everything that happened since it was last asked. */
  findings(): Promise<string[]>
  /** To be asked before a page is left: its marks go with it. */
  ranIn(page: Page): Promise<void>
}

/** Of the pages that the context has, and of any that comes; `home` is the only origin that may be asked for anything. */
export function watchContext(context: BrowserContext, options: { home: string; canary: Canary }): Watch {
  const { home, canary } = options
  const seen: string[] = []
  let heardBefore = canary.heard.length
  context.on('request', (request) => {
    const url = request.url()
    if (!url.startsWith(`${home}/`) && !/^(?:data|about|blob):/.test(url)) seen.push(`a request for ${url}`)
  })
  context.on('dialog', (dialog) => {
    seen.push(`a dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  context.on('page', (page) => seen.push(`a new window: ${page.url()}`))
  for (const page of context.pages()) {
    page.on('framenavigated', (frame) => {
      const isAway = frame === page.mainFrame() && !frame.url().startsWith(`${home}/`)
      if (isAway) seen.push(`the page left for ${frame.url()}`)
    })
  }
  return {
    async findings() {
      const frames = context.pages().flatMap((page) => page.frames())
      for (const frame of frames) {
        // A frame that went away meanwhile has nothing to tell.
        const ran = await frame.evaluate(() => '__ran' in window).catch(() => false)
        if (ran) seen.push(`a script ran in ${frame.url()}`)
      }
      for (const { path } of canary.heard.slice(heardBefore)) seen.push(`the canary heard ${path}`)
      heardBefore = canary.heard.length
      return seen.splice(0)
    },
    async ranIn(page) {
      const ran = await Promise.all(
        page.frames().map((frame) => frame.evaluate(() => '__ran' in window).catch(() => false)),
      )
      if (ran.includes(true)) seen.push(`a script ran in ${page.url()}`)
    },
  }
}
