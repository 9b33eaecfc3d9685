import { useStore } from '../store.ts'
import { Icon } from './icon.tsx'
import { closeToast, toasts } from './toast-store.ts'

export function Toasts() {
  const shown = useStore(toasts)
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.map(({ id, text, tone }) => (
        <div key={id} class={`toast tone-${tone}`}>
          <Icon name={tone === 'danger' || tone === 'warn' ? 'alert' : 'check'} />
          <p>{text}</p>
          <button
            type="button"
            class="icon-button"
            aria-label="Close this message"
            onClick={() => closeToast(id)}
          >
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  )
}
