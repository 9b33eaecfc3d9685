/**
 * Mail that tries to run something in the page that shows it, to send word to its sender, or to lead the reader
 * away. `CANARY` stands for a server that must never hear of it; RUN is what a script of theirs would do.
 */

export type HostileHtml = {
  name: string
  html: string
  /** False where no browser of today falls for it: there is nothing to see then on a page without protection. */
  isLive?: boolean
}

/** Sets the mark that the test looks for, and opens a dialog, without any quotes. */
export const RUN = 'alert(window.__ran=1)'

/** Signs that a parser and a browser may read as different things are what these live on. */
export function hostileHtml(canary: string): HostileHtml[] {
  const url = (name: string): string => `${canary}/${name}`
  return [
    ...scripts(url),
    ...foreignContent(url),
    ...mutations(),
    ...addresses(url),
    ...navigation(url),
    ...styles(url),
    ...remoteContent(url),
  ].map((one) => ({ isLive: true, ...one }))
}

type Url = (name: string) => string

const scripts = (url: Url): HostileHtml[] => [
  { name: 'a script', html: `<script>${RUN}</script>` },
  { name: 'a script from elsewhere', html: `<script src="${url('script.js')}"></script>` },
  { name: 'a script in odd letters', html: `<ScRiPt\n/x>${RUN}</sCrIpT\t>` },
  { name: 'a script within a script', html: `<scr<script>ipt>${RUN}</scr</script>ipt>`, isLive: false },
  { name: 'an image that fails', html: `<img src=x onerror=${RUN}>` },
  { name: 'an image that fails, with slashes', html: `<img/src="x"/onerror=${RUN}//>` },
  { name: 'a body that loads', html: `</p></body><body onload=${RUN}>` },
  { name: 'a field that takes the focus', html: `<input autofocus onfocus=${RUN}>` },
  { name: 'details that open', html: `<details open ontoggle=${RUN}><summary>x</summary></details>` },
  { name: 'a media element', html: `<video><source onerror=${RUN}></video><audio src=x onerror=${RUN}>` },
  {
    name: 'an animation that begins',
    html: `<style>@keyframes x{}</style><p style="animation: x 1s" onanimationstart=${RUN}>x`,
  },
  {
    name: 'attributes that end a quote',
    html: `<img alt="\`><script>${RUN}</script>" title='"><img src=x onerror=${RUN}>' src=x>`,
    isLive: false,
  },
]

const foreignContent = (url: Url): HostileHtml[] => [
  { name: 'svg that loads', html: `<svg onload=${RUN}>` },
  { name: 'a script in svg', html: `<svg><script>${RUN}</script></svg>` },
  {
    name: 'svg that animates an address',
    html: `<svg><a><animate attributeName=href values="javascript:${RUN}"/><text y=20 id=click>x</text></a></svg>`,
  },
  {
    name: 'svg from elsewhere',
    html: `<svg><image href="${url('svg.png')}"/><use href="${url('use.svg')}#x"/></svg>`,
  },
  {
    name: 'math with a link',
    html: `<math><mtext><a id=click href="javascript:${RUN}">x</a></mtext></math>`,
  },
  {
    name: 'an embedded svg',
    html: `<embed src="data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='${RUN}'/>">`,
    isLive: false,
  },
]

/** Harmless as written, and something else after it was read and written once more. */
const mutations = (): HostileHtml[] => [
  {
    name: 'noscript that closes itself',
    html: `<noscript><p title="</noscript><img src=x onerror=${RUN}>"></noscript>`,
    isLive: false,
  },
  {
    name: 'style within svg',
    html: `<svg><style><img src="</style><img src=x onerror=${RUN}>"></style></svg>`,
  },
  {
    name: 'style within math',
    html: `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=x onerror=${RUN}&gt;">`,
    isLive: false,
  },
  {
    name: 'a form in a form',
    html: `<form><math><mtext></form><form><mglyph><style></math><img src=x onerror=${RUN}>`,
    isLive: false,
  },
  {
    name: 'a template',
    html: `<template><img src=x onerror=${RUN}></template><p><template shadowrootmode=open><img src=x onerror=${RUN}></template></p>`,
  },
  { name: 'a comment that ends early', html: `<!--><img src=x onerror=${RUN}>-->` },
  { name: 'a comment that ends with a bang', html: `<!-- x --!><img src=x onerror=${RUN}>` },
  { name: 'a title', html: `<title><p title="</title><img src=x onerror=${RUN}>"></title>` },
  { name: 'a text area', html: `<textarea><p title="</textarea><img src=x onerror=${RUN}>"></textarea>` },
  {
    name: 'old raw text',
    html: `<xmp><p title="</xmp><img src=x onerror=${RUN}>"></xmp><noembed><p title="</noembed><img src=x onerror=${RUN}>">`,
  },
  {
    name: 'a select',
    html: `<select><option><style></option></select><img src=x onerror=${RUN}></style></select>`,
    isLive: false,
  },
  {
    name: 'a zero byte in a tag',
    html: `<im\0g src=x onerror=${RUN}><scr\0ipt>${RUN}</scr\0ipt>`,
    isLive: false,
  },
  { name: 'a CDATA section', html: `<svg><![CDATA[><img src=x onerror=${RUN}>]]></svg>`, isLive: false },
]

const addresses = (url: Url): HostileHtml[] => [
  { name: 'a link with a script', html: `<a id=click href="javascript:${RUN}">x</a>` },
  { name: 'a link with a hidden script', html: `<a id=click href="&#1;java&#10;script&colon;${RUN}">x</a>` },
  {
    name: 'a link to a document of its own',
    html: `<a id=click href="data:text/html,<script>${RUN}</script>">x</a>`,
    isLive: false,
  },
  {
    name: 'a link to this server',
    html: '<a id=click href="/api/sign-out">x</a><a href="//x.example">y</a>',
    isLive: false,
  },
  {
    name: 'a frame with a script',
    html: `<iframe src="javascript:parent.${RUN.replace('window', 'parent')}"></iframe>`,
  },
  { name: 'a frame with a document', html: `<iframe srcdoc="<script>top.__ran=1;${RUN}</script>"></iframe>` },
  {
    name: 'an object',
    html: `<object data="${url('object')}"></object><embed src="${url('embed')}"><applet code="${url('applet')}">`,
  },
  { name: 'a base', html: `<base href="${url('base/')}"><img src="relative.png">` },
]

const navigation = (url: Url): HostileHtml[] => [
  { name: 'a refresh', html: `<meta http-equiv="refresh" content="0;url=${url('refresh')}">` },
  {
    name: 'a form that is sent by a click',
    html: `<form action="${url('form')}" method=post><input name=x value=1><button id=click>Go</button></form>`,
  },
  {
    name: 'a button with an address',
    html: `<form id=f></form><button id=click form=f formaction="${url('button')}">Go</button>`,
  },
  { name: 'a way to the top', html: `<a id=click href="${url('top')}" target=_top>x</a>`, isLive: false },
  {
    name: 'a map',
    html: `<img src=data:, usemap=#m width=50 height=50 id=click><map name=m><area shape=default href="${url('map')}" target=_top></map>`,
  },
]

const styles = (url: Url): HostileHtml[] => [
  {
    name: 'a style with an address',
    html: `<p style="background: url(${url('style-url')}); list-style: url('${url('list')}')">x</p>`,
  },
  {
    name: 'a style sheet that imports',
    html: `<style>@import "${url('import.css')}"; body { background: url(${url('sheet')}) }</style>`,
  },
  {
    name: 'a linked style sheet',
    html: `<link rel=stylesheet href="${url('linked.css')}"><link rel=preload as=image href="${url('preload')}"><link rel=prefetch href="${url('prefetch')}">`,
  },
  { name: 'a style with escapes', html: `<p style="back\\67round: u\\72l(${url('escaped')})">x</p>` },
  {
    name: 'a style with a comment',
    html: `<p style="background/**/:u/**/rl(x);background:url(/*)*/${url('comment')})">x</p>`,
    isLive: false,
  },
  { name: 'image-set', html: `<p style='background: image-set("${url('set')}" 1x)'>x</p>` },
  {
    name: 'old scripts in styles',
    html: `<p style="width: expression(${RUN}); behavior: url(${url('htc')}); -moz-binding: url(${url('xbl')})">x</p>`,
    isLive: false,
  },
  {
    name: 'a font from elsewhere',
    html: `<style>@font-face { font-family: f; src: url(${url('font')}) }</style><p style="font-family: f">x</p>`,
  },
  {
    name: 'a background of a table',
    html: `<table background="${url('table')}"><tr><td background="${url('cell')}">x</td></tr></table>`,
  },
]

const remoteContent = (url: Url): HostileHtml[] => [
  {
    name: 'a picture',
    html: `<img src="${url('picture')}"><img srcset="${url('srcset')} 1x"><picture><source srcset="${url('source')}"><img></picture>`,
  },
  {
    name: 'a picture from nowhere',
    html: '<img src="https://canary.invalid/pixel.png"><input type=image src="https://canary.invalid/input.png">',
  },
  {
    name: 'media',
    html: `<video src="${url('video')}" poster="${url('poster')}" autoplay></video><audio src="${url('audio')}" autoplay></audio>`,
  },
  { name: 'a ping', html: `<a id=click href="#x" ping="${url('ping')}">x</a>` },
]

/** Layers over the whole page, to catch a click or to look like a sign-in. */
export const OVERLAY = `<div style="position: fixed; inset: 0; z-index: 2147483647; background: red">
<p style="position:absolute;top:-9999px">x</p><p style="POSITION : /**/ sticky">y</p><p style="transform: scale(99)">z</p></div>`

/** What stands in places that are text: names, subjects, labels, file names. */
export const TEXT_TRICKS = [
  `<img src=x onerror=${RUN}>`,
  `"><script>${RUN}</script>`,
  `'><svg onload=${RUN}>`,
  `javascript:${RUN}`,
  `{{constructor.constructor('${RUN}')()}}`,
]
