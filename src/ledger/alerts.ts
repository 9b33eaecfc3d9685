/** Alerts: one row per condition and target; sending is rate-limited here, so that all processes share the limit. */
import type { Tx } from './contract.ts'

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
  const rows = await tx.all<{ sent_at: number }>(
    `INSERT INTO alerts(condition, target, severity, text, first_at, last_at, sent_at) VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (condition, target) DO UPDATE SET
       text = excluded.text, last_at = excluded.last_at, count = alerts.count + 1, cleared_at = NULL,
       first_at = CASE WHEN alerts.cleared_at IS NULL THEN alerts.first_at ELSE excluded.first_at END,
       sent_at = CASE WHEN alerts.sent_at <= ? OR (alerts.severity = 'warning' AND excluded.severity = 'critical')
         THEN excluded.sent_at ELSE alerts.sent_at END,
       severity = excluded.severity
     RETURNING sent_at, count`,
    [alert.condition, alert.target, alert.severity, alert.text, now, now, now, now - quietMs],
  )
  return rows[0]?.sent_at === now
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
