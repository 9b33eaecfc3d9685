/**
 * Words that tell what is wanted of a reader, in the languages that mail here is written in. Beginnings of words in
 * small letters; several words where one alone says nothing.
 */
import type { Category } from '../contract.ts'

export const CUES: Record<Category, readonly string[]> = {
  needs_response: split(
    `which would|when would|please reply|könnten sie|kannst du|bist du|hätten sie|soll ich
    ihre antwort|frage|pouvez-vous|pourriez-vous|est-ce que|seriez-vous|dis-moi|dites-moi|as-tu|dime
    quedo a la espera|fammi sapere|preferisci|kun je|hoor het graag|czy możemy|proszę o|let me know
    could you|can you|would you|do you|did you|are you|is it|what do you|what can i|which one
    when are|shall we|should i|may i|who is|your view|your opinion|please help|tell me|your thoughts
    question|opinion|können sie|könntest du|hast du|was würde|was ist ihnen|sollen wir|rückmeldung
    antwortet|wer kann|wissen sie|passt ihnen|sind sie|was schenken|schreiben sie mir|stimmt das
    rückfrage|peux-tu|votre avis|laquelle|préférez|ton avis|qu’en pens|qu'en pens|¿|podrías|podría
    puedes|qué le|cuál|tu respuesta|su respuesta|me lo puede|cuéntame|puoi|ci sei|gostaria
    sua resposta|pode dizer`,
  ),
  action_required: split(
    `please sign|sign it|to sign|has to|action needed|update|upgrade|return the|bitte füllen
    laden sie|unterschr|vereinbaren sie|läuft ab|geben sie|signer|signé|veuillez|remplir|doit être
    firm|tiene que|presentar|moet|prazo|em falta|podpisać|must|have to|upload|log in|renew|expires
    required|complete|register|confirm your|bring|make sure|before the|deadline|check in|check-in
    access required|submit|frist|bis spätestens|tragt|eintragen|bestätigen sie|abholen|abgeholt
    bringen sie|fällig|verfäll|beantragen|ausfüllen|wählen sie|muss|müssen|innerhalb von|avant le
    connectez-vous|il faut|mettre à jour|mettez à jour|à fournir|obligatoire|rendez-vous|déposer
    faute de|antes del|debe|deben|hay que|caduca|renuév|obligatori|recoja|plazo
    pendiente en su buzón|falta la|traiga|entréguela|complet|si prega|inviare entro`,
  ),
  payment_request: split(
    `payment|pay|due on|premium|charge|penalty|lastschrift|paiement|règlement|impayé|réglée|sanción
    honorarios|fattura|bonifico|pagamento|invoice|paid|amount due|overdue|fee|balance|bill|transfer
    owe|your share|your half|deposit|rent|settle|outstanding|rechnung|überweis|zahl|betrag|mahnung
    beitrag|nachzahlung|forderung|gebühr|anzahlung|begleichen|berechnen|verwarnungsgeld|liquidation
    hälfte|kasse|facture|payer|régler|montant|virement|cotisation|amende|tu me dois|chèque|à régler
    facturation|factura|pago|pagar|importe|transferencia|abon|cuota|recibo|minuta|multa|me debes
    bizum|ingresar|derrama|factuur|te betalen|betal|conta|faktura|płatności|kwot|paypal|iban
    bank details`,
  ),
  fyi: split(
    `newsletter|receipt|delivered|for your records|no action|nothing to do|do not need to|no need to
    fyi|out of office|out of the office|statement|gute reise|absent|novedades|fuera de la oficina
    vacaciones|boletín|unsubscribe|just so you know|just to let you know|this week|is now available
    liked your|minutes|arrived|released|payslip|nothing else|closed|within the normal|confirmed
    zur kenntnis|nichts zu tun|musst nichts|brauchst|abwesenheit|nicht im büro|versandt|zugestellt
    bestätigung|wieder in betrieb|wir wünschen|protokoll|freu mich|pour info|rien d’autre|nouvelles
    votre colis|est arrivé|bien rentré|relevé|confirmé|est sorti|bon voyage|disponible dans|levée
    automatiquement|simplement que|solo para que|no hace falta que contestes|entregado
    para su información|confirmad|gracias por su compra|ya llegamos|extracto|no es necesario
    entregue|hoeft niets|gelukt|do wiadomości|dziękujemy`,
  ),
  waiting: split(
    `we will|get back to you|come back to you|melde mich|sobald|wird geprüft|hören sie von
    schicke ihnen|kümmert sich|reviens vers vous|dès que|dès réception|tiens au courant|en cours
    bien reçu|vous répondra|le confirmamos|te digo|le responderemos|hemos recibido
    se pondrá en contacto|ti mando|wij behandelen|rozpatrywan|poinformujemy|i'll|i will|be in touch
    as soon as|let you know|being processed|we have received|has been received|within two working
    working days|waiting for|will be notified|hear from|will contact|keep you|once the|when i have
    tomorrow|will ring|will send|will report|melden uns|ist eingegangen|bearbeiten
    gebe ihnen nachricht|sag dir|bescheid|rufen an|beauftragt|reviendrons|recontacte|je vous envoie
    je te|je transmets|en cuanto|le aviso|avisamos|te escribo|en trámite|estamos|seguimos esperando
    le diremos|recibirá un aviso|ti faccio sapere|vou confirmar|envio-lhe|zostało przyjęt`,
  ),
}

/** The commonest small words: enough to tell one language from another in a few lines. */
export const SMALL_WORDS: Record<string, readonly string[]> = {
  en: split('the|and|you|your|is|to|of|for|we|are|have|will|with|it|that|this|not|be|our|by|please|i'),
  de: split(
    'der|die|das|und|ich|sie|wir|ist|nicht|mit|für|bitte|ihr|ihre|auf|den|ein|eine|zu|von|im|es|bis|noch',
  ),
  fr: split('le|la|les|et|vous|nous|est|pas|pour|votre|une|un|des|du|dans|je|que|sur|avec|merci|au|ce|à'),
  es: split('el|la|los|y|de|que|en|su|para|por|con|una|un|se|le|no|es|del|las|lo|está|más|¿'),
  it: split('il|la|di|che|e|per|non|un|una|del|con|sono|è|le|ti|si|della|in'),
  nl: split('de|het|een|en|van|u|wij|uw|is|niet|voor|met|dat|je|op|hebben|ook'),
  pt: split('o|a|de|que|e|do|da|em|um|uma|para|não|com|os|sua|seu|no|na|ou'),
  pl: split('i|w|na|do|z|się|nie|jest|o|że|proszę|jak|lub|od|już|za'),
}

function split(list: string): string[] {
  return list.split(/\s*[|\n]\s*/).filter((word) => word !== '')
}
