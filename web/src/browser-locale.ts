/**
 * Some browsers report the locale of their surroundings as it is, such as `en-US@posix`, which is no language tag:
 * libraries that hand it to Intl when they are loaded would take the page down with them.
 */
export function mendLocale(browser: { readonly language: string }): void {
  try {
    new Intl.NumberFormat(browser.language)
  } catch {
    Object.defineProperty(browser, 'language', { value: new Intl.NumberFormat().resolvedOptions().locale })
  }
}
