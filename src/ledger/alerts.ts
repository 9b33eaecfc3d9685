/** Alerts: one row per condition and target; sending is rate-limited here, so that all processes share the limit. */
import type { Tx } from './contract.ts'
import { storableText } from './input-check.ts'

export type Severity = 'warning' | 'critical'
export type NewAlert = { condition: string; target: string; severity: Severity; text: string }
export type AlertRow = NewAlert & {
  id: number
  first_at: number
  last_at: number
  sent_at: number
  count: number
  cleared_at: number | null
}

/** Notes the alert; true if it should be sent now: new, worse than before, or silent for `quietMs`. */
export async function raiseAlert(tx: Tx, alert: NewAlert, now: number, quietMs: number): Promise<boolean> {
  const { condition, severity } = alert
  const [target, text] = [storableText(alert.target), storableText(alert.text)]
  const added = await tx.run(
    `INSERT INTO alerts(condition, target, severity, text, first_at, last_at, sent_at) VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (condition, target) DO NOTHING`,
    [condition, target, severity, text, now, now, now],
  )
  if (added === 1) return true
  // By whether the row changed, not by its time: two processes may ask within one millisecond.
  const due = await tx.run(
    `UPDATE alerts SET sent_at = ? WHERE condition = ? AND target = ?
       AND (sent_at <= ? OR (severity = 'warning' AND ? = 'critical'))`,
    [now, condition, target, now - quietMs, severity],
  )
  await tx.run(
    `UPDATE alerts SET severity = ?, text = ?, last_at = ?, count = count + 1,
       first_at = CASE WHEN cleared_at IS NULL THEN first_at ELSE ? END, cleared_at = NULL
     WHERE condition = ? AND target = ?`,
    [severity, text, now, now, condition, target],
  )
  return due === 1
}

export async function clearAlert(tx: Tx, condition: string, target: string, now: number): Promise<boolean> {
  const changed = await tx.run(
    `UPDATE alerts SET cleared_at = ? WHERE condition = ? AND target = ? AND cleared_at IS NULL`,
    [now, condition, target],
  )
  return changed > 0
}

export function listAlerts(tx: Tx, options: { cleared?: boolean } = {}): Promise<AlertRow[]> {
  return tx.all<AlertRow>(
    `SELECT * FROM alerts ${options.cleared ? '' : 'WHERE cleared_at IS NULL'} ORDER BY last_at DESC LIMIT 1000`,
  )
}
