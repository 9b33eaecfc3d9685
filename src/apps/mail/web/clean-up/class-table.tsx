/** What is refused, and why: the classes of a plan or a run. */
import { Link } from 'wouter-preact'
import { Bytes, Count } from '../../../../../web/src/components/values.tsx'
import type { ArchivePlan } from '../../api/schemas.ts'
import { messageLink } from '../links.ts'

/** Here the archive itself is at fault. */
const DAMAGE = new Set(['mismatch', 'unreadable'])

export function ClassTable(props: { account: string; classes: ArchivePlan['refused']; caption: string }) {
  if (props.classes.length === 0) return null
  return (
    <table class="class-table">
      <caption class="visually-hidden">{props.caption}</caption>
      <thead>
        <tr>
          <th scope="col">Left alone because</th>
          <th scope="col" class="cell-end">
            Messages
          </th>
          <th scope="col" class="cell-end">
            Size
          </th>
        </tr>
      </thead>
      <tbody>
        {props.classes.map((row) => (
          <tr key={row.class} class={DAMAGE.has(row.class) ? 'is-damage' : undefined}>
            <th scope="row">
              {row.text}
              {row.example === null ? null : (
                <>
                  {' '}
                  <Link href={messageLink(props.account, row.example)} aria-label={`An example: ${row.text}`}>
                    example
                  </Link>
                </>
              )}
            </th>
            <td class="cell-end">
              <Count value={row.messages} />
            </td>
            <td class="cell-end">
              <Bytes value={row.bytes} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
