/** Text inside of XML and HTML. */
export function escapeXml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}

export const XML_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'

/** A container's list of relations: what one of its members refers to. */
export function relations(of: readonly { id: string; type: string; target: string }[]): string {
  const base = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships/'
  const core = 'http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties'
  const items = of.map(
    ({ id, type, target }) =>
      `<Relationship Id="${id}" Type="${type === 'core' ? core : base + type}" Target="${escapeXml(target)}"/>`,
  )
  return `${XML_HEAD}<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">${items.join('')}</Relationships>`
}

/** What each member of a container is. */
export function contentTypes(of: readonly { part: string; type: string }[]): string {
  const base = 'application/vnd.openxmlformats-officedocument.'
  const items = of.map(({ part, type }) => {
    const full =
      type === 'core' ? 'application/vnd.openxmlformats-package.core-properties+xml' : `${base}${type}+xml`
    return `<Override PartName="${part}" ContentType="${full}"/>`
  })
  return `${XML_HEAD}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>${items.join('')}</Types>`
}

export function coreProperties(title: string): string {
  return `${XML_HEAD}<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>${escapeXml(title)}</dc:title></cp:coreProperties>`
}
