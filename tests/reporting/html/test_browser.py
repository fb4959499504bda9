"""The report in a browser: opened from a file, without a network, by mouse and by keyboard."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import shutil
from itertools import combinations, pairwise
from pathlib import Path

import pytest
import reports
from effort import PATIENCE
from reports import HOSTILE, document

from fedcdh import discover
from fedcdh.evaluation.demo import hospital_study
from fedcdh.reporting.html import write_report
from fedcdh.reporting.result_files import render_result_json

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install selenium")
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no browser: apt-get install chromium chromium-driver"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of selenium's own sockets
]
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1400,1000",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.execute_cdp_cmd("Network.enable", {})
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    driver.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Reports by name: the demo, made-up graphs of three sizes, and one whose names try to break out."""
    folder = tmp_path_factory.mktemp("reports")
    demo = json.loads(render_result_json(discover(hospital_study().columns(), domain="hospital")))
    demo.setdefault("drift", reports.drift(demo))
    demo["stability"] = reports.stability(demo)
    documents = {"demo": demo, "hostile": document(list(HOSTILE))}
    documents |= {str(size): document([f"v{at}" for at in range(size)]) for size in (5, 30, 100)}
    return {name: write_report(made, folder / f"{name}.html") for name, made in documents.items()}


@pytest.fixture
def opened(browser, pages):
    """Opens a report; afterwards, nothing may have been complained about or asked for."""

    def go(name: str, theme: str = "light"):
        still = {"name": "prefers-reduced-motion", "value": "reduce"}  # no smooth scrolling under a driver's clicks
        media = [{"name": "prefers-color-scheme", "value": theme}, still]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
        browser.get(Path(pages[name]).as_uri())
        return browser

    browser.get_log("browser"), browser.get_log("performance")
    yield go
    assert browser.get_log("browser") == []
    sent = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [one["params"]["request"]["url"] for one in sent if one["method"] == "Network.requestWillBeSent"]
    assert [url for url in asked if not url.startswith("file:")] == []


def text(browser, selector: str) -> str:
    return browser.find_element(By.CSS_SELECTOR, selector).text


def edge_between(browser, source: str, target: str) -> str:
    data = json.loads(browser.find_element(By.ID, "data").get_attribute("textContent"))
    names = {node["id"]: node["name"] for node in data["nodes"]}
    return next(e["id"] for e in data["edges"] if (names[e["source"]], names[e["target"]]) == (source, target))


FREE = """
const edge = document.getElementById(arguments[0]), path = edge.querySelector('.hit');
for (let share = 0.05; share < 1; share += 0.05) {
  const at = path.getPointAtLength(share * path.getTotalLength()).matrixTransform(path.getScreenCTM());
  if (edge.contains(document.elementFromPoint(at.x, at.y))) return [Math.round(at.x), Math.round(at.y)];
}
"""


def click_edge(browser, edge: str) -> None:
    """Somewhere on its curve where nothing else lies on top, as a hand would."""
    browser.execute_script("document.getElementById('graph').scrollIntoView({block: 'center', behavior: 'instant'})")
    x, y = browser.execute_script(FREE, edge)
    pointer = ActionChains(browser, duration=10)
    pointer.w3c_actions.pointer_action.move_to_location(x, y)
    pointer.w3c_actions.pointer_action.click()
    pointer.perform()


def drag(browser, element, right: int, down: int) -> None:
    """From the middle of the element, by its place in the window: drivers misplace elements of drawings."""
    middle = "const b = arguments[0].getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]"
    x, y = map(round, browser.execute_script(middle, element))
    pointer = ActionChains(browser, duration=20)
    pointer.w3c_actions.pointer_action.move_to_location(x, y)
    pointer.w3c_actions.pointer_action.pointer_down()
    pointer.w3c_actions.pointer_action.move_to_location(x + right, y + down)
    pointer.w3c_actions.pointer_action.pointer_up()
    pointer.perform()


def press(browser, *keys: str) -> None:
    ActionChains(browser, duration=10).send_keys(*keys).perform()


def active(browser) -> str:
    return browser.execute_script("return document.activeElement.id || document.activeElement.tagName")


def test_clicking_an_edge_shows_its_evidence(opened):
    browser = opened("demo")
    click_edge(browser, edge_between(browser, "bmi", "cholesterol"))
    shown = text(browser, "#details")
    assert "bmi is a direct cause of cholesterol." in shown
    assert re.search(r"log Bayes factor \+\d+\n", shown)
    row = next(line for line in text(browser, "#edges-table").splitlines() if line.startswith("bmi → cholesterol"))
    link, direction = re.findall(r"([<>]?0\.\d\d) \(", shown)
    assert row.split()[3:5] == [link, direction]
    assert re.search(r"Direct effect\n\+0\.\d+ \(", shown)
    assert re.search(r"explains \d+\s% of the variance", shown)
    assert "Bayes" not in row
    assert "collider" in shown
    assert "Only this direction explains" in shown
    assert "link in 75 % of 4 runs" in shown
    assert browser.find_elements(By.CSS_SELECTOR, "tr.chosen")
    click_edge(browser, edge_between(browser, "age", "exercise"))
    assert "age is a direct cause of exercise." in text(browser, "#details")
    assert "Noise of any shape explains" in text(browser, "#details")
    press(browser, Keys.ESCAPE)
    assert "Point at a link" in text(browser, "#details")


def test_clicking_a_node_shows_its_mechanism_and_leads_to_its_edges(opened):
    browser = opened("demo")
    browser.find_element(By.CSS_SELECTOR, '.node[aria-label^="medication"]').click()
    shown = text(browser, "#details")
    assert "differs between sites" in shown
    assert "Causes" in shown
    browser.find_element(By.CSS_SELECTOR, "#details li button").click()
    assert "cholesterol is a direct cause of medication" in text(browser, "#details")
    assert active(browser) == edge_between(browser, "cholesterol", "medication")


def test_the_slider_hides_weak_links_in_picture_and_table(opened):
    browser = opened("demo")
    slider = browser.find_element(By.ID, "strength")
    slider.send_keys(Keys.END)
    shown, *_, measure, _, least = text(browser, "#strength-text").split()
    assert (measure, least) == ("probability", "0.99")
    assert 0 < int(shown) < 10
    assert len([e for e in browser.find_elements(By.CSS_SELECTOR, ".edge") if e.is_displayed()]) == int(shown)
    rows = browser.find_elements(By.CSS_SELECTOR, "tr[data-edge]")
    assert len([row for row in rows if row.is_displayed()]) == int(shown)
    assert all(row.text.count("0.99") == 2 for row in rows if row.is_displayed())
    slider.send_keys(Keys.HOME)
    assert text(browser, "#strength-text") == "all 10 links"
    assert all(row.is_displayed() for row in rows)


def test_the_search_finds_names(opened):
    browser = opened("demo")
    box = browser.find_element(By.ID, "search")
    box.send_keys("CHOL")
    assert [e.get_attribute("aria-label") for e in browser.find_elements(By.CSS_SELECTOR, "#graph .found")] == [
        "cholesterol"
    ]
    rows = [row for row in browser.find_elements(By.CSS_SELECTOR, "tr[data-edge]") if row.is_displayed()]
    assert len(rows) == 4
    box.send_keys(Keys.ENTER)
    assert text(browser, "#details h3") == "cholesterol"
    press(browser, Keys.ESCAPE)
    assert browser.find_elements(By.CSS_SELECTOR, "#graph .found") == []


def test_all_of_it_works_by_keyboard(opened):
    browser = opened("demo")
    order = []
    for _ in range(24):
        press(browser, Keys.TAB)
        order.append(active(browser))
    tools = ["search", "strength", "closer", "farther", "fit"]
    at = order.index("search")
    assert order[at : at + 5] == tools
    assert order[at + 5].startswith("e")  # one stop for all links, one for all variables
    assert order[at + 6].startswith("n")
    assert not any(stop.startswith(("e", "n")) for stop in order[at + 7 :] if stop[1:].isdigit())
    browser.execute_script("document.querySelector('.node[tabindex=\"0\"]').focus()")
    seen = {active(browser)}
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ARROW_LEFT, Keys.HOME, Keys.END):
        press(browser, key)
        seen.add(active(browser))
    assert len(seen) >= 3
    press(browser, Keys.ENTER)
    label = browser.execute_script("return document.activeElement.getAttribute('aria-label')")
    assert label.split(",")[0] == text(browser, "#details h3")
    browser.execute_script("document.querySelector('.edge[tabindex=\"0\"]').focus()")
    press(browser, Keys.ENTER)
    assert "Evidence for the link" in text(browser, "#details")
    first = active(browser)
    press(browser, "n")
    assert active(browser) != first


def test_nodes_can_be_dragged_and_the_picture_zoomed(opened):
    browser = opened("demo")
    browser.execute_script("document.getElementById('graph').scrollIntoView({block: 'center', behavior: 'instant'})")
    node = browser.find_element(By.CSS_SELECTOR, '.node[aria-label="smoker"]')
    edge = edge_between(browser, "smoker", "cholesterol")
    before, line = node.rect, browser.find_element(By.CSS_SELECTOR, f"#{edge} .curve").get_attribute("d")
    drag(browser, node, 40, 60)
    assert abs(node.rect["x"] - before["x"] - 40) <= 3
    assert browser.find_element(By.CSS_SELECTOR, f"#{edge} .curve").get_attribute("d") != line
    assert "Point at a link" in text(browser, "#details") or text(browser, "#details h3") == "smoker"
    width = node.rect["width"]
    browser.find_element(By.ID, "closer").click()
    assert node.rect["width"] > 1.1 * width
    browser.find_element(By.ID, "fit").click()
    assert abs(node.rect["width"] - width) < 2


def test_tables_sort(opened):
    browser = opened("demo")
    head = browser.find_element(By.CSS_SELECTOR, "#edges-table th.number button")
    table = "document.querySelector('#edges-table table')"
    column = f"return [...{table}.querySelectorAll('tr[data-edge]')].map(r => +r.cells[1].dataset.value)"
    head.click()
    rising = browser.execute_script(column)
    assert rising == sorted(rising)
    head.click()
    assert browser.execute_script(column) == rising[::-1]
    assert browser.find_elements(By.CSS_SELECTOR, "#edges-table th[aria-sort=descending]")


def test_the_paragraph_can_be_copied(opened):
    browser = opened("demo")
    browser.find_element(By.ID, "copy").click()
    WebDriverWait(browser, PATIENCE).until(lambda _: text(browser, "#copied") != "")


@pytest.mark.parametrize("size", ["5", "30", "100"])
def test_pictures_of_any_size_are_light_and_clear(opened, size):
    browser = opened(size)
    assert len(browser.find_elements(By.CSS_SELECTOR, "#graph .node")) == int(size)
    assert browser.execute_script("return document.getElementsByTagName('*').length") < 1500 + 3 * int(size) ** 2
    boxes = browser.execute_script(
        "return [...document.querySelectorAll('#graph .node .box')].map(e => { const b = e.getBoundingClientRect();"
        "return [b.left, b.top, b.right, b.bottom] })"
    )
    for a, b in combinations(boxes, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
    fits = "return [...document.querySelectorAll('#graph .node')].map(n => n.querySelector('.name').getBBox().width - n.querySelector('.box').getBBox().width)"  # noqa: E501
    assert max(browser.execute_script(fits)) <= 0
    letters = browser.execute_script("return document.querySelector('#graph .name').getBoundingClientRect().height")
    assert letters > (8 if size == "100" else 10)
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")


def test_names_that_try_to_break_out_are_only_names(opened):
    browser = opened("hostile")
    assert len(browser.find_elements(By.TAG_NAME, "script")) == 2
    assert browser.find_elements(By.TAG_NAME, "img") == []
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    widest = "return Math.max(...[...document.querySelectorAll('td:not(.long)')].map(e => e.offsetWidth))"
    assert browser.execute_script(widest) < 420
    for node in browser.find_elements(By.CSS_SELECTOR, "#graph .node"):
        browser.execute_script("arguments[0].focus()", node)
        press(browser, Keys.ENTER)
        title = browser.find_element(By.CSS_SELECTOR, "#details h3").get_attribute("textContent")
        assert node.get_attribute("aria-label").startswith(title)
    with contextlib.suppress(Exception):
        browser.switch_to.alert.dismiss()
        pytest.fail("a name was run as a script")


CONTRAST = """
const channel = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const numbers = text => text.match(/[\\d.]+/g).map(Number);
const behind = element => {
  if (element.closest('.node')) return numbers(getComputedStyle(element.closest('.node').querySelector('.box')).fill);
  for (let at = element; at; at = at.parentElement) {
    const sibling = at.tagName === 'text' && at.parentElement.querySelector(':scope > rect');
    if (sibling) return numbers(sibling.getAttribute('fill'));
    const colour = numbers(getComputedStyle(at).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
};
const bad = [];
for (const element of document.querySelectorAll('body *')) {
  const own = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
  if (!own || element.closest('script, style, title, desc') || !element.getClientRects().length) continue;
  const style = getComputedStyle(element), svg = element.namespaceURI.includes('svg');
  const [a, b] = [luminance(numbers(svg ? style.fill : style.color)), luminance(behind(element))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < 4.5) bad.push([element.tagName, element.textContent.slice(0, 40), contrast]);
}
return bad;
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_text_can_be_read_in_light_and_dark(opened, theme):
    browser = opened("demo", theme)
    dark = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, dark[4:-1].split(","))) < 60) == (theme == "dark")
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    click_edge(browser, edge_between(browser, "bmi", "cholesterol"))
    press(browser, Keys.ESCAPE)
    assert browser.execute_script(CONTRAST) == []
    browser.find_element(By.ID, "theme").click()
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") != dark
    assert browser.execute_script(CONTRAST) == []


def test_everything_that_can_be_used_has_a_name(opened):
    browser = opened("demo")
    nameless = browser.execute_script(
        "return [...document.querySelectorAll('button, input, [role=button], [role=region], [role=img], section, nav,"
        " aside')].filter(e => !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') ||"
        " e.textContent.trim() || (e.labels && e.labels.length))).map(e => e.outerHTML)"
    )
    assert nameless == []
    levels = browser.execute_script("return [...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
    missing = "return [...document.querySelectorAll('[aria-labelledby], [aria-describedby]')].flatMap(e => ((e.getAttribute('aria-labelledby') || '') + ' ' + (e.getAttribute('aria-describedby') || '')).split(' ')).filter(id => id && !document.getElementById(id))"  # noqa: E501
    assert browser.execute_script(missing) == []


def test_printed_it_is_light_and_complete(opened):
    browser = opened("demo", "dark")
    media = {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    assert browser.execute_script("return getComputedStyle(document.body).color") == "rgb(27, 35, 48)"
    assert not browser.find_element(By.ID, "search").is_displayed()
    assert browser.find_element(By.CSS_SELECTOR, "#methods blockquote").is_displayed()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_without_scripts_tables_and_picture_are_there(opened):
    browser = opened("demo")
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        opened("demo")
        assert len(browser.find_elements(By.CSS_SELECTOR, "#edges .edge title")) == 10
        assert browser.find_element(By.ID, "graph").is_displayed()
        assert "systolic_pressure" in text(browser, "#edges-table table")
        assert not browser.find_element(By.ID, "search").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.fixture
def phone(browser):
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    yield
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


WIDER = """
const outside = (e) => { const b = e.getBoundingClientRect(); return b.width > 0 && (b.right > innerWidth + 1 || b.left < -1); };
return [...document.querySelectorAll('main *, header *')].filter(e => !e.closest('.skip, caption, thead, svg') && outside(e))
  .map(e => e.outerHTML.slice(0, 120));
"""  # noqa: E501


@pytest.mark.parametrize("name", ["demo", "5", "30", "100", "hostile"])
def test_on_a_phone_nothing_is_wider_than_the_page(opened, phone, name):
    browser = opened(name)
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert browser.execute_script("return innerWidth") == 390
    assert browser.execute_script(WIDER) == []
    assert not browser.find_element(By.ID, "graph").is_displayed()
    picture = browser.find_element(By.CSS_SELECTOR, ".graph.narrow")
    assert picture.is_displayed()
    assert picture.rect["width"] <= 360
    scrolls = "return [...document.querySelectorAll('.scroll, .map, .canvas')].filter(e => e.scrollWidth > e.clientWidth + 1).length"  # noqa: E501
    assert browser.execute_script(scrolls) == 0


def test_on_a_phone_a_tap_shows_the_evidence_and_cells_are_named(opened, phone):
    browser = opened("demo")
    node = browser.find_element(By.CSS_SELECTOR, ".graph.narrow .node.changing")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", node)
    node.click()
    assert "differs between sites" in text(browser, "#details")
    assert browser.find_elements(By.CSS_SELECTOR, ".graph.narrow .chosen")
    letters = browser.execute_script("return arguments[0].querySelector('.name').getBoundingClientRect().height", node)
    assert letters > 10
    labels = "return [...document.querySelectorAll('.cards td:not(.title):not(.plot)')].every(td => td.dataset.label)"
    assert browser.execute_script(labels)


def test_thirty_variables_print_on_six_pages(opened):
    browser = opened("30")
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69})
    pages = re.findall(rb"/Type\s*/Page\b(?!s)", base64.b64decode(printed["data"]))
    assert 2 <= len(pages) <= 6
