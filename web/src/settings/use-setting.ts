import { useQueryClient } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import type { SettingView } from '../../../src/app/schemas.ts'
import { api } from '../api.ts'
import { showToast } from '../components/toast-store.ts'
import { keys } from '../queries.ts'

/** What a person would call them. */
const TITLES: Readonly<Record<string, string>> = {
  'bandwidth.upload': 'Upload at most',
  'bandwidth.download': 'Download at most',
  'bandwidth.combined': 'Both together at most',
  'mail.poll_minutes': 'Look for new mail every (minutes)',
  'files.poll_seconds': 'Ask OneDrive for changes every (seconds)',
  'files.scan_minutes': 'Look through whole folders every (minutes)',
  'drive.poll_minutes': 'Ask Google Drive for changes every (minutes)',
  'assist.poll_minutes': 'Look at mail to sort every (minutes)',
  'assist.full_scan_minutes': 'Compare the whole inbox every (minutes)',
  'ingest.receive_wait_seconds': 'Ask a queue anew every (seconds)',
}

export function settingTitle(key: string): string {
  return TITLES[key] ?? key
}

/** Saves a setting; what went wrong stands beside it. */
export function useSetting({ key }: SettingView) {
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState('')
  const save = async (value: string | null): Promise<void> => {
    setBusy(true)
    setError('')
    try {
      const saved = await api.setConfig(key, value)
      showToast(`${settingTitle(key)}: ${saved.value}`, { tone: 'accent' })
      await client.invalidateQueries({ queryKey: keys.config })
    } catch (cause) {
      setError(cause instanceof Error ? cause.message : 'That did not work.')
    } finally {
      setBusy(false)
    }
  }
  return { save, busy, error }
}
