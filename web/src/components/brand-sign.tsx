export function BrandSign() {
  return (
    <svg class="brand-sign" viewBox="0 0 32 32" aria-hidden="true">
      <path d="M3 12.5c4.3 0 4.3-3.6 8.7-3.6s4.3 3.6 8.6 3.6 4.4-3.6 8.7-3.6" />
      <path class="brand-mark" d="M3 21.5h26" />
    </svg>
  )
}
