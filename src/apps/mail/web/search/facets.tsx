/** How many there are by year, sender and label; a click asks for these only. */
import { formatCount } from '../../../../../web/src/format.ts'
import type { SearchFacetsView } from '../../api/schemas.ts'
import { isQuietLabel, labelQuery, labelText, operatorText } from './words.ts'

const VALUES_MAX = 6

export type FacetsProps = {
  facets: SearchFacetsView
  q: string
  onPick: (q: string) => void
}

export function Facets({ facets, q, onPick }: FacetsProps) {
  const labels = facets.labels.filter(({ value }) => !isQuietLabel(value))
  const groups = [
    { title: 'Year', values: facets.years, text: String, query: yearQuery },
    { title: 'Sender', values: facets.senders, text: String, query: senderQuery },
    { title: 'Label', values: labels, text: labelText, query: labelQuery },
  ].filter(({ values }) => values.length > 1)
  if (groups.length === 0) return null
  return (
    <details class="mail-facets" open={matchMedia('(width >= 64rem)').matches}>
      <summary class="small">By year, sender and label</summary>
      <div class="mail-facet-groups">
        {groups.map(({ title, values, text, query }) => (
          <section key={title} aria-label={title}>
            <h2 class="mail-facet-title">{title}</h2>
            <ul>
              {values.slice(0, VALUES_MAX).map(({ value, messages }) => (
                <li key={value}>
                  <button
                    type="button"
                    class="mail-facet"
                    title={`Only ${text(value)}`}
                    onClick={() => onPick(narrowed(q, query(value)))}
                  >
                    <span class="truncate">{text(value)}</span>
                    <span class="muted small num">{formatCount(messages)}</span>
                  </button>
                </li>
              ))}
            </ul>
          </section>
        ))}
      </div>
      {facets.counted < facets.messages ? (
        <p class="muted small">Of the newest {formatCount(facets.counted)}.</p>
      ) : null}
    </details>
  )
}

/** Queries know no day before 1970, and mail of a broken clock is older. */
function yearQuery(year: string): string {
  const before = `before:${Number(year) + 1}/01/01`
  return Number(year) < 1970 ? before : `after:${year}/01/01 ${before}`
}
const senderQuery = (address: string): string => operatorText('from', address)

/** The query with one condition more; one with OR is kept together. */
export function narrowed(q: string, condition: string): string {
  const plain = q.trim()
  if (plain === '') return condition
  return `${/\bOR\b|[{}]/.test(plain) ? `(${plain})` : plain} ${condition}`
}
