'use strict';
// Live updates, keys, output that is followed. Every page works without this script.
(() => {
  const by = id => document.getElementById(id);
  const main = by('main');

  // morph makes a node like another one and keeps what the reader did to it: focus, marks, what is open.
  function morph(from, to) {
    if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName) { from.replaceWith(to.cloneNode(true)); return; }
    if (from.nodeType === Node.TEXT_NODE) {
      if (from.data !== to.data) from.data = to.data;
      return;
    }
    if (from.nodeType !== Node.ELEMENT_NODE) return;
    // What the reader works in stays; buttons on a job change with its state unless one of their forms is open.
    if (from.hasAttribute('data-keep') && !(from.matches('.actions') && !from.querySelector('details[open]'))) return;
    if (from.isEqualNode(to)) return;
    for (const {name} of [...from.attributes])
      if (!to.hasAttribute(name) && !(name === 'open' && from.nodeName === 'DETAILS')) from.removeAttribute(name);
    for (const {name, value} of to.attributes)
      if (from.getAttribute(name) !== value && !(name === 'checked' || name === 'value' && from === document.activeElement))
        from.setAttribute(name, value);
    children(from, to);
  }

  // children morphs the children of a node, those with the same key into each other.
  function children(from, to) {
    const key = n => n.nodeType === Node.ELEMENT_NODE && (n.querySelector(':scope > .mark input[name=job]')?.value || n.id);
    const known = new Map();
    for (const n of from.childNodes) if (key(n)) known.set(key(n), n);
    let at = from.firstChild;
    for (const n of [...to.childNodes]) {
      const same = key(n) && known.get(key(n));
      if (same && same !== at) { from.insertBefore(same, at); at = same; }
      if (!at) { from.appendChild(n.cloneNode(true)); continue; }
      if (!same && key(at) && key(at) !== key(n)) { from.insertBefore(n.cloneNode(true), at); continue; }
      const next = at.nextSibling;
      morph(at, n);
      at = next;
    }
    while (at) { const next = at.nextSibling; at.remove(); at = next; }
  }

  // One stream a page. It rests while nobody sees the page, and while updates are paused.
  const page = document.body.dataset.live;
  let stream = null, lost = 0, paused = sessionStorage.getItem('paused') === '1';
  function away(...says) { by('away').replaceChildren(...says); by('away').hidden = !says.length; }
  function unanswered() {
    lost = lost || Date.now();
    away('The server does not answer since ' + new Date(lost).toLocaleString() + '. What you see is from then. A server of your own machine: scrimp open leads to it again.');
  }
  // signedIn says whether the reader has a session; null: the server does not answer.
  async function signedIn() {
    try {
      const got = await fetch(location.href, {method: 'HEAD', redirect: 'manual', cache: 'no-store'});
      return got.type !== 'opaqueredirect';
    } catch { return null; }
  }
  function signIn() {
    location.replace('/sign-in?' + new URLSearchParams({ended: '1', to: location.pathname + location.search}));
  }
  function follow() {
    const wanted = page && !paused && !document.hidden;
    if (!wanted && stream) { stream.close(); stream = null; }
    if (!wanted || stream) return;
    stream = new EventSource('/live?at=' + encodeURIComponent(page));
    stream.onopen = () => { lost = 0; away(); };
    stream.addEventListener('main', e => {
      const to = document.createElement('main');
      to.innerHTML = JSON.parse(e.data);
      if (!document.activeElement?.closest('main form:not(#bulk)')) children(main, to);
      found(); local(main); marked();
    });
    stream.addEventListener('gone', async () => {
      stream.close();
      if (await signedIn() === false) signIn(); else location.reload();
    });
    stream.onerror = () => {
      if (stream.readyState === EventSource.CLOSED) { stream = null; again(); } else unanswered();
    };
  }
  // again follows anew, or leads to the sign-in where the session has ended.
  async function again() {
    const good = await signedIn();
    if (good === false) { signIn(); return; }
    if (good) away('The server sends no live updates now: too many pages may be open. Reload the page to see what is new.');
    else unanswered();
    setTimeout(follow, 3000);
  }
  function showPause() {
    if (!by('pause')) return;
    by('pause').setAttribute('aria-pressed', paused);
    by('pause-text').textContent = paused ? 'Paused' : 'Live';
  }
  function pause() {
    paused = !paused;
    sessionStorage.setItem('paused', paused ? '1' : '0');
    showPause(); follow(); output();
  }
  by('pause')?.addEventListener('click', pause);
  document.addEventListener('visibilitychange', follow);

  // Times show the reader's own clock to who points at them.
  function local(of) {
    for (const t of of.querySelectorAll('time[datetime]')) {
      const at = new Date(t.dateTime);
      if (!isNaN(at) && !t.title.includes('·')) t.title += ' · ' + at.toLocaleString() + ' here';
    }
  }

  // The output of a job, as it comes.
  const log = by('log');
  const most = 400000;
  let reading = null;
  async function output() {
    if (!log?.dataset.follow || paused || reading) return;
    reading = new AbortController();
    try {
      const got = await fetch(log.dataset.follow, {signal: reading.signal});
      if (!got.ok) return;
      let first = true;
      const text = got.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const {value, done} = await text.read();
        if (done) break;
        const end = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
        let all = (first ? '' : log.textContent) + value.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/g, '\uFFFD');
        if (all.length > most) all = all.slice(-most / 2);
        first = false;
        log.textContent = all;
        found();
        if (end) log.scrollTop = log.scrollHeight;
      }
    } catch { /* it goes on with the next page */ } finally { reading = null; }
  }

  // What is searched for in the output.
  const find = by('log-search');
  function found() {
    if (!find?.isConnected || !log) return; // a job that ends without output takes both off the page
    const text = log.textContent, what = find.value;
    if (!what) {
      if (log.firstElementChild) log.textContent = text;
      by('log-found').textContent = '';
      return;
    }
    const parts = text.toLowerCase().split(what.toLowerCase());
    const out = document.createDocumentFragment();
    let at = 0;
    parts.slice(0, 1000).forEach((part, i) => {
      out.append(text.slice(at, at + part.length));
      at += part.length;
      if (i === parts.length - 1) return;
      const hit = document.createElement('mark');
      hit.textContent = text.slice(at, at + what.length);
      out.append(hit);
      at += what.length;
    });
    out.append(text.slice(at));
    log.replaceChildren(out);
    by('log-found').textContent = parts.length - 1 + ' found';
  }
  find?.addEventListener('input', () => { found(); log.querySelector('mark')?.scrollIntoView({block: 'nearest'}); });
  if (log) log.scrollTop = log.scrollHeight;

  // Jobs that are marked.
  function marked() {
    const boxes = [...document.querySelectorAll('#bulk input[name=job]')];
    const n = boxes.filter(b => b.checked).length, all = by('all-match')?.checked;
    if (by('marked')) by('marked').textContent = all ? 'All that match:' : n ? n + (n === 1 ? ' job:' : ' jobs:') : 'Mark jobs to';
    for (const b of document.querySelectorAll('.bulk button')) b.disabled = !all && boxes.length > 0 && n === 0;
    if (by('mark-all')) by('mark-all').checked = n > 0 && n === boxes.length;
  }
  document.addEventListener('change', e => {
    if (e.target.id === 'mark-all')
      for (const b of document.querySelectorAll('#bulk input[name=job]')) b.checked = e.target.checked;
    if (e.target.closest('#bulk')) marked();
    if (e.target.matches('.filters select, .filters input[type=checkbox]')) e.target.form.requestSubmit();
  });
  // A form is sent only where the server answers and the session is good: else what the reader filled in would be lost.
  const asked = new WeakSet(), sure = new WeakSet();
  document.addEventListener('submit', async e => {
    const form = e.target;
    if (!form.matches('main form[method=post]:not([action="/sign-in"])') || sure.has(form)) return;
    e.preventDefault();
    e.stopImmediatePropagation();
    if (asked.has(form)) return;
    asked.add(form);
    const good = await signedIn();
    asked.delete(form);
    if (good) {
      sure.add(form);
      form.requestSubmit(e.submitter);
      sure.delete(form);
      return;
    }
    if (good === null) { away('The server does not answer: nothing was sent. Send the form again once it answers.'); } else {
      const to = document.createElement('a');
      to.href = '/sign-in?ended=1'; to.target = '_blank'; to.textContent = 'Sign in in another tab';
      away('Your session has ended, and nothing was sent. ', to, ', then send the form again.');
    }
  });
  document.addEventListener('submit', e => {
    const act = e.submitter?.value;
    if (e.target.id === 'bulk' && !by('all-match')?.checked && ['cancel', 'stop', 'rerun'].includes(act) &&
      !confirm(e.submitter.textContent + ' the jobs that are marked?')) e.preventDefault();
  });

  // A form is sent once: planning takes seconds.
  document.addEventListener('submit', e => {
    if (!e.target.matches('[data-once]') || e.defaultPrevented) return;
    const sent = e.submitter;
    if (sent) { sent.setAttribute('aria-busy', 'true'); setTimeout(() => { sent.disabled = true; }, 0); }
  });
  window.addEventListener('pageshow', () => {
    for (const b of document.querySelectorAll('[aria-busy]')) { b.disabled = false; b.removeAttribute('aria-busy'); }
  });

  // Keys: g and the first letter of a page that no page before it has.
  const keys = {};
  for (const k of document.querySelectorAll('#keys kbd[data-key]')) {
    const letter = [...k.dataset.key.toLowerCase()].find(c => !keys[c]);
    keys[letter] = k.closest('dt').nextElementSibling.querySelector('a').href;
    k.textContent = letter;
  }
  let went = 0;
  document.addEventListener('keydown', e => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest('input, textarea, select, [contenteditable]')) return;
    const to = keys[e.key], after = Date.now() - went < 1500;
    went = e.key === 'g' ? Date.now() : 0;
    if (after && to) { location.href = to; }
    else if (e.key === '/') { e.preventDefault(); by('search')?.focus(); }
    else if (e.key === '?') { by('keys')?.showModal(); }
    else if (e.key === 'p' && by('pause')) { pause(); }
  });
  by('keys-open')?.addEventListener('click', () => by('keys').showModal());

  for (const e of document.querySelectorAll('[data-newest]')) e.scrollLeft = e.scrollWidth;
  // On a narrow screen the navigation scrolls to where the reader is.
  for (const a of document.querySelectorAll('.top [aria-current]'))
    for (let e = a.parentElement; e && !e.matches('.top'); e = e.parentElement)
      if (e.scrollWidth > e.clientWidth) e.scrollLeft += a.getBoundingClientRect().right - e.getBoundingClientRect().right + 24;
  showPause(); local(document); marked(); follow(); output();
})();
