"""Drives Chromium through the page of the first argument. With a folder as the second one it leaves screenshots there."""

import sys
from pathlib import Path

from browser import Browser

TITLES = "return [...document.querySelectorAll('h2')].map(x => x.firstChild.textContent.trim())"
COUNT = "return document.querySelectorAll(arguments[0]).length"
IN_SIGHT = """const code = document.querySelectorAll('.code')[1].getBoundingClientRect();
return [...document.querySelectorAll('section:last-child ' + arguments[0])].some(x => {
  const place = x.getBoundingClientRect(); return place.height && place.top >= code.top - 1 && place.bottom <= code.bottom + 1; })"""


def browse(browser, path):
    browser.size(1400, 900)
    browser.open(f"file://{path}#online")
    browser.wait("return document.body.classList.contains('ready')")
    shown = browser.run(TITLES)
    text = browser.run(
        """const code = document.querySelector('.code'), top = code.getBoundingClientRect().top;
        return [...code.querySelectorAll('.l')].find(x => x.getBoundingClientRect().top >= top - 1).textContent"""
    )
    assert "func.func @attention(" in text, text
    print(f"two rooms: {', '.join(shown)}; the kernel is in sight")
    browser.keep("wide.png")

    tiles, spans = browser.run(COUNT, ".mask rect"), browser.run(COUNT, ".timeline svg rect")
    assert tiles > 10 and spans > 100 and browser.run("return document.querySelector('#pictures').open")
    told = browser.run("return document.querySelector('#pictures summary').textContent")
    kept = browser.run("return document.querySelector('.mask figcaption').textContent.replace(/\\s+/g, ' ')")
    print(f"pictures of {told}; {kept}")

    find = "[...document.querySelectorAll('section:first-child .l.from')].find(x => x.textContent.includes('attn.online_attention'))"
    number = browser.run(f"const line = {find}; line.click(); return line.dataset.n")
    linked = browser.run(COUNT, "section:last-child .linked")
    assert linked and browser.run(IN_SIGHT, ".linked")
    browser.run("document.querySelector('section:last-child .linked').click()")
    back = browser.run("return [...document.querySelectorAll('section:first-child .linked')].map(x => x.dataset.n)")
    assert number in back, (number, back)
    print(f"a line of room 3 led to {linked} lines of room 4, and back")
    browser.keep("linked.png")

    folds, hidden = browser.run(COUNT, ".fold"), browser.run(COUNT, ".l.hidden")
    assert hidden >= 3 * folds
    browser.run("document.querySelector('.fold').click()")
    assert browser.run(COUNT, ".fold") == folds - 1 and browser.run(COUNT, ".l.hidden") < hidden
    browser.run("document.querySelector('#fold').click()")
    assert browser.run(COUNT, ".fold") == browser.run(COUNT, ".l.hidden") == 0
    browser.run("document.querySelector('#fold').click()")
    assert browser.run(COUNT, ".l.hidden") == hidden
    print(f"folded {folds} runs of constants, opened one, opened all")

    browser.run("const box = document.querySelector('input'); box.value = 'TILE.mma'; box.dispatchEvent(new Event('input'))")
    found = browser.run(COUNT, ".found")
    expected = browser.run("return [...document.querySelectorAll('.l')].filter(x => x.textContent.includes('tile.mma')).length")
    assert found == expected, (found, expected)
    first = browser.run("return document.querySelector('#count').textContent")
    browser.run("document.querySelector('input').dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }))")
    assert (first, browser.run("return document.querySelector('#count').textContent")) == (f"1 of {found}", f"2 of {found}")
    assert browser.run(IN_SIGHT, ".found")
    print(f"found {found} lines, and the next")
    browser.run("const box = document.querySelector('input'); box.value = ''; box.dispatchEvent(new Event('input'))")
    assert browser.run(COUNT, ".found") == 0

    browser.run("[...document.querySelectorAll('section:first-child a')].find(x => x.textContent === '%arg0').click()")
    print(f"a value is marked {browser.run(COUNT, 'a.same')} times")
    browser.press("ArrowRight")
    browser.wait("return location.hash === '#tile' && document.querySelector('h2').textContent.startsWith('4 tile')")
    print(f"arrows lead on to {browser.run(TITLES)[0]}")

    browser.dark()
    colours = browser.run("const x = getComputedStyle(document.body); return [x.color, x.backgroundColor]")
    light, dark = (sum(map(int, colour[4:-1].split(","))) for colour in colours)
    assert light > 600 and dark < 200, colours
    print("dark: light text on a dark ground")
    browser.keep("dark.png")

    browser.size(400, 800)
    browser.open("about:blank")
    browser.open(f"file://{path}#tile")
    browser.wait("return document.body.classList.contains('ready')")
    assert browser.run("return document.documentElement.scrollWidth") <= 400
    assert not browser.run("return document.querySelector('#pictures').open")
    tops = browser.run("return [...document.querySelectorAll('section')].map(x => x.getBoundingClientRect().top)")
    assert tops[1] > tops[0]
    print("phone: no wider than 400 pixels, rooms below each other, pictures shut")
    browser.keep("phone.png")
    browser.run("document.querySelector('#pictures').open = true")
    assert browser.run("return document.documentElement.scrollWidth") <= 400
    browser.keep("phone-pictures.png")
    assert not browser.complaints()
    print("the console is empty")


with Browser(sys.argv[2] if len(sys.argv) > 2 else None) as chromium:
    browse(chromium, Path(sys.argv[1]).resolve())
