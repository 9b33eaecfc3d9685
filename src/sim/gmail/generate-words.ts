/**
 * What generated mail talks about, in several languages: written for this purpose. `{thing}` and
 * `{place}` in a sentence are filled from the lists beside it.
 */
export type Language = 'en' | 'de' | 'fr' | 'es' | 'pl' | 'ru' | 'ja' | 'zh' | 'ko' | 'ar'

export type Wording = {
  topics: readonly string[]
  greeting: string
  closing: string
  sentences: readonly string[]
  things: readonly string[]
  places: readonly string[]
  /** As written, and as an address spells it. */
  names: readonly (readonly [name: string, spelled: string])[]
  /** Charsets that mail in this language has used over the years. */
  charsets: readonly string[]
}

export const WORDINGS: Record<Language, Wording> = {
  en: {
    topics: [
      'Minutes of the meeting',
      'Invoice',
      'Your order has shipped',
      'Plans for the weekend',
      'Question about the contract',
      'Photos from the trip',
      'Draft of the report',
      'Dinner on Friday',
      'Travel details',
      'Broken heating in the office',
      'Reading list',
      'Change of address',
      'Roof repair estimate',
      'Choir practice moved',
    ],
    greeting: 'Hello,',
    closing: 'Best wishes',
    sentences: [
      'I have put the {thing} on the shelf in {place}.',
      'Could you send me the {thing} before we meet in {place}?',
      'Nobody in {place} seems to know where the {thing} went.',
      'The {thing} costs less than we thought, so I ordered two.',
      'We leave for {place} at seven; please bring the {thing}.',
      'After the storm the {thing} had to be repaired in {place}.',
      'Please compare the {thing} with the one that Clara brought.',
      'It rained all day, and we talked about the {thing} for hours.',
      'The people from {place} will look at the {thing} on Tuesday.',
      'Attached you will find the {thing} that I promised.',
      'If the {thing} does not fit, we can exchange it in {place}.',
      'I am not sure that the {thing} is worth the trouble.',
      'Thank you for carrying the {thing} up the stairs!',
      'Let us decide about the {thing} when everybody is back from {place}.',
    ],
    things: [
      'ladder',
      'invoice',
      'manuscript',
      'bicycle',
      'projector',
      'lease',
      'kettle',
      'timetable',
      'budget',
      'lantern',
      'spare key',
      'telescope',
      'guest list',
      'harvest',
      'printer',
      'map',
      'violin',
      'receipt',
      'curtain',
      'prototype',
      'schedule',
      'umbrella',
      'boat',
      'recipe',
    ],
    places: [
      'the harbour',
      'Leeds',
      'the old mill',
      'Room 12',
      'Bristol',
      'the library',
      'Dunmore',
      'the greenhouse',
      'Ottawa',
      'the north tower',
    ],
    names: [
      ['Alice Hartley', 'alice.hartley'],
      ['Tom Winslow', 'tom.winslow'],
      ['Priya Nair', 'priya'],
      ['George Oduya', 'g.oduya'],
      ["Mary O'Dell", 'mary.odell'],
      ['Henry Vance', 'hvance'],
      ['Clara Bright', 'clara.bright'],
      ['Owen Fletcher', 'owen'],
    ],
    charsets: ['us-ascii', 'us-ascii', 'utf-8', 'iso-8859-1', 'windows-1252'],
  },
  de: {
    topics: [
      'Rückfrage zur Rechnung',
      'Termin nächste Woche',
      'Größe der Lieferung',
      'Grüße aus Köln',
      'Prüfbericht',
      'Schlüsselübergabe',
    ],
    greeting: 'Guten Tag,',
    closing: 'Mit freundlichen Grüßen',
    sentences: [
      'Die {thing} liegt seit gestern in {place} bereit.',
      'Könnten Sie mir die {thing} bitte bis Freitag schicken?',
      'Für die {thing} fehlt uns noch die Unterschrift aus {place}.',
      'Wir haben die {thing} geprüft und nichts Auffälliges gefunden.',
      'Am Dienstag fährt jemand nach {place} und bringt die {thing} mit.',
      'Leider wurde die {thing} während des Transports beschädigt.',
      'Über die {thing} müssen wir noch einmal in Ruhe sprechen.',
      'Schöne Grüße, und danke für die {thing}!',
    ],
    things: [
      'Übersicht',
      'Rechnung',
      'Gießkanne',
      'Ausrüstung',
      'Prüfliste',
      'Leiter',
      'Bürotür',
      'Straßenkarte',
      'Wäscheleine',
    ],
    places: ['München', 'Köln', 'der Werkstatt', 'Lübeck', 'Raum fünf', 'Düsseldorf'],
    names: [
      ['Jürgen Weiß', 'j.weiss'],
      ['Käthe Müller', 'kaethe.mueller'],
      ['Anton Brandt', 'anton.brandt'],
      ['Sabine Köhler', 's.koehler'],
    ],
    charsets: ['utf-8', 'iso-8859-1', 'windows-1252', 'iso-8859-15'],
  },
  fr: {
    topics: [
      'Réunion reportée',
      'Votre commande expédiée',
      'Projet de contrat modifié',
      'Fête de la rentrée',
      'Dégât des eaux',
    ],
    greeting: 'Bonjour,',
    closing: 'À bientôt',
    sentences: [
      'La {thing} est restée à {place}, je passerai la chercher.',
      'Pourriez-vous vérifier la {thing} avant la réunion ?',
      'Nous avons reçu la {thing}, merci beaucoup !',
      'Où avez-vous trouvé cette {thing} ? Elle est très belle.',
      'Le départ pour {place} est prévu à six heures et demie.',
      "L'équipe de {place} a préféré garder l'ancienne {thing}.",
      'Ça fait déjà un été que la {thing} est cassée.',
    ],
    things: ['clé', 'facture', 'échelle', 'fenêtre', 'théière', 'boîte', 'pièce détachée', 'traduction'],
    places: ['Orléans', 'Besançon', "l'atelier", 'Genève', 'la bibliothèque'],
    names: [
      ['Hélène Dubois', 'helene.dubois'],
      ['François Lefèvre', 'f.lefevre'],
      ['Zoé Garnier', 'zoe'],
    ],
    charsets: ['utf-8', 'iso-8859-1', 'iso-8859-15', 'windows-1252'],
  },
  es: {
    topics: ['Confirmación del envío', 'Reunión de mañana', 'Presupuesto del año', 'Fotos de la excursión'],
    greeting: 'Buenos días:',
    closing: 'Un saludo',
    sentences: [
      'La {thing} llegó ayer a {place} sin ningún daño.',
      '¿Podría enviarme la {thing} antes del miércoles?',
      'Todavía no sabemos quién pagará la {thing}.',
      'El señor Ibáñez recogerá la {thing} en {place}.',
      'Mañana por la mañana cerramos; la {thing} queda en la entrada.',
      '¡Qué alegría volver a ver la {thing} de la abuela!',
    ],
    things: ['cigüeña', 'factura', 'máquina', 'caña de pescar', 'lámpara', 'edición', 'piñata'],
    places: ['León', 'Cádiz', 'la estación', 'Bogotá', 'el jardín'],
    names: [
      ['José Ibáñez', 'jose.ibanez'],
      ['Begoña Muñoz', 'b.munoz'],
      ['Lucía Peña', 'lucia'],
    ],
    charsets: ['utf-8', 'iso-8859-1', 'windows-1252'],
  },
  pl: {
    topics: ['Zaproszenie na próbę', 'Faktura za wrzesień', 'Pytanie o klucze', 'Zdjęcia z gór'],
    greeting: 'Dzień dobry,',
    closing: 'Pozdrawiam serdecznie',
    sentences: [
      'Nasza {thing} została w miejscu {place}.',
      'Czy mogłabyś przysłać {thing} przed środą?',
      'Wczoraj wieczorem ktoś zabrał {thing} z półki.',
      'Pojedziemy przez {place}, jeśli śnieg stopnieje.',
      'Dziękuję za pożyczoną {thing}, bardzo się przydała.',
    ],
    things: ['łódź', 'książka', 'gęś', 'żarówka', 'ścieżka', 'paczka'],
    places: ['Łódź', 'Gdańsk', 'Świnoujście', 'Kraków'],
    names: [
      ['Łukasz Żak', 'lukasz.zak'],
      ['Małgorzata Sęk', 'm.sek'],
    ],
    charsets: ['utf-8', 'iso-8859-2', 'windows-1250'],
  },
  ru: {
    topics: ['Протокол собрания', 'Счёт за ремонт', 'Поездка на дачу', 'Вопрос по договору'],
    greeting: 'Здравствуйте!',
    closing: 'С уважением',
    sentences: [
      'Вчера {thing} привезли прямо в {place}.',
      'Пришлите, пожалуйста, {thing} до конца недели.',
      'Мы долго искали {thing}, но нашли только коробку.',
      'На следующей неделе едем в {place}, поезд в шесть утра.',
      'Если {thing} не подойдёт, обменяем без разговоров.',
      'Бабушка просила передать вам {thing} и варенье.',
    ],
    things: ['лестницу', 'книгу', 'самовар', 'чертёж', 'ключ', 'фонарь'],
    places: ['Псков', 'город', 'мастерскую', 'Тверь'],
    names: [
      ['Ольга Петрова', 'o.petrova'],
      ['Фёдор Щукин', 'f.schukin'],
    ],
    charsets: ['koi8-r', 'windows-1251', 'utf-8'],
  },
  ja: {
    topics: ['会議の議事録', '請求書の件', '来週の予定', '写真を送ります'],
    greeting: 'お世話になっております。',
    closing: 'よろしくお願いいたします。',
    sentences: [
      '{thing}は{place}に置いてあります。',
      '{thing}を金曜日までに送っていただけますか。',
      '昨日、{place}で新しい{thing}を見つけました。',
      '雨が降ったら{thing}を持って行きます。',
      'みんなで{place}へ行くのを楽しみにしています。',
      '{thing}の値段をもう一度確認してください。',
    ],
    things: ['資料', '自転車', '傘', '地図', '鍵', '予算表'],
    places: ['京都', '図書館', '第二会議室', '横浜'],
    names: [
      ['山本 桜', 'sakura.yamamoto'],
      ['中村 健', 'k.nakamura'],
    ],
    charsets: ['iso-2022-jp', 'shift_jis', 'utf-8', 'euc-jp'],
  },
  zh: {
    topics: ['会议记录', '发票已寄出', '周末计划', '合同问题'],
    greeting: '您好：',
    closing: '祝好',
    sentences: [
      '{thing}已经放在{place}了。',
      '请在星期五之前把{thing}寄给我。',
      '昨天在{place}没有找到{thing}。',
      '如果下雨，我们就在{place}见面。',
      '这个{thing}比我想的便宜得多。',
    ],
    things: ['报告', '自行车', '钥匙', '地图', '雨伞', '样品'],
    places: ['上海', '图书馆', '三号会议室', '成都'],
    names: [
      ['李小梅', 'xiaomei.li'],
      ['王建国', 'jg.wang'],
    ],
    charsets: ['gb18030', 'gb2312', 'utf-8'],
  },
  ko: {
    topics: ['회의록 보냅니다', '영수증 확인', '주말 약속'],
    greeting: '안녕하세요,',
    closing: '감사합니다',
    sentences: [
      '{thing} 하나를 {place}에 두고 왔습니다.',
      '금요일까지 {thing} 사진을 보내 주세요.',
      '내일 {place}에서 만나면 {thing}도 가져갈게요.',
      '비가 오면 {place} 앞에서 기다리겠습니다.',
    ],
    things: ['우산', '지도', '열쇠', '자전거', '보고서'],
    places: ['부산', '도서관', '회의실'],
    names: [
      ['김민서', 'minseo.kim'],
      ['박지훈', 'jihoon'],
    ],
    charsets: ['euc-kr', 'utf-8'],
  },
  ar: {
    topics: ['محضر الاجتماع', 'فاتورة الشهر', 'موعد السفر'],
    greeting: 'مرحبا،',
    closing: 'مع أطيب التحيات',
    sentences: [
      'وضعت {thing} في {place} صباح اليوم.',
      'هل يمكنك إرسال {thing} قبل يوم الخميس؟',
      'سنلتقي غدا في {place} ونتحدث عن {thing}.',
      'شكرا على {thing}، وصلت في الوقت المناسب.',
    ],
    things: ['التقرير', 'المفتاح', 'الخريطة', 'الدراجة'],
    places: ['المكتبة', 'القاهرة', 'الميناء'],
    names: [
      ['ليلى حداد', 'layla.haddad'],
      ['سامر خوري', 's.khoury'],
    ],
    charsets: ['windows-1256', 'iso-8859-6', 'utf-8'],
  },
}

/** How often each language occurs, of a hundred. */
export const LANGUAGE_SHARES: readonly (readonly [Language, number])[] = [
  ['en', 52],
  ['de', 12],
  ['fr', 8],
  ['es', 7],
  ['ru', 5],
  ['ja', 5],
  ['zh', 4],
  ['pl', 3],
  ['ko', 2],
  ['ar', 2],
]

const SYLLABLES = [
  'va',
  'lo',
  'ri',
  'mek',
  'tan',
  'so',
  'dri',
  'pel',
  'un',
  'ka',
  'zor',
  'mi',
  'fen',
  'ta',
  'gul',
  'bo',
]

/** A word that hardly any other text has: 4,096 of them, the low numbers first in use. */
export function codeName(number: number): string {
  const at = (shift: number): string => SYLLABLES[(number >>> shift) & 15]!
  const word = at(0) + at(4) + at(8)
  return word[0]!.toUpperCase() + word.slice(1)
}
