/** What there is of each kind among the results; a click asks for these only. */
import { formatCount } from '../../../../../web/src/format.ts'
import type { SearchAnswerView } from '../../api/schemas.ts'
import { FACETS, type FacetName, type Filters } from '../api.ts'
import { sourceName } from './hit-list.tsx'

const TITLES: Record<FacetName, string> = {
  source: 'Where',
  type: 'What',
  owner: 'Whose',
  folder: 'Folder',
  year: 'Year',
}
const VALUES_MAX = 8

export type FacetsProps = {
  facets: SearchAnswerView['facets']
  filters: Filters
  onToggle: (facet: FacetName, value: string) => void
}

export function Facets({ facets, filters, onToggle }: FacetsProps) {
  return (
    <nav class="facets" aria-label="Narrow it down">
      {FACETS.map((facet) => {
        const chosen = filters[facet] ?? []
        const counted = facets[facet] ?? []
        // What was chosen stays in sight, also where nothing is left of it.
        const missing = chosen.filter((value) => !counted.some((one) => one.value === value))
        const values = [...counted, ...missing.map((value) => ({ value, count: 0 }))].slice(0, VALUES_MAX)
        if (values.length === 0 || (values.length === 1 && chosen.length === 0)) return null
        return (
          <fieldset key={facet} class="facet">
            <legend>{TITLES[facet]}</legend>
            {values.map(({ value, count }) => (
              <label key={value} class="facet-value">
                <input
                  type="checkbox"
                  checked={chosen.includes(value)}
                  onChange={() => onToggle(facet, value)}
                />
                <span class="truncate">{facet === 'source' ? sourceName(value) : value}</span>
                <span class="muted small num">{formatCount(count)}</span>
              </label>
            ))}
          </fieldset>
        )
      })}
    </nav>
  )
}
