/** What models were asked, by day, purpose and model, and what it cost. */
import { Card } from '../../../../web/src/components/card.tsx'
import { EmptyNote, Loaded, Skeleton } from '../../../../web/src/components/notes.tsx'
import { formatCount } from '../../../../web/src/format.ts'
import { useCosts } from './queries.ts'
import { costText } from './words.ts'

export function Costs() {
  const costs = useCosts()
  return (
    <Card title="Costs">
      <Loaded query={costs} waiting={<Skeleton lines={4} />}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyNote title="No model was asked yet" />
          ) : (
            <div class="assist-scroll">
              <table class="assist-table num">
                <thead>
                  <tr>
                    <th scope="col">Day</th>
                    <th scope="col">For</th>
                    <th scope="col">Model</th>
                    <th scope="col">Calls</th>
                    <th scope="col">Tokens in</th>
                    <th scope="col">Tokens out</th>
                    <th scope="col">Cost</th>
                  </tr>
                </thead>
                <tbody>
                  {items.map((one) => (
                    <tr key={`${one.day} ${one.purpose} ${one.model}`}>
                      <td>{one.day}</td>
                      <td>{one.purpose}</td>
                      <td>{one.model}</td>
                      <td>
                        {formatCount(one.calls)}
                        {one.failed > 0 ? `, ${formatCount(one.failed)} failed` : ''}
                      </td>
                      <td>{formatCount(one.inputTokens)}</td>
                      <td>{formatCount(one.outputTokens)}</td>
                      <td>{costText(one.costMicros)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Loaded>
    </Card>
  )
}
