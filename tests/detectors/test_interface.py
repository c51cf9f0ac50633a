"""Interfaces: pages compare by address, title and place, words that it worked are no result, handles are masked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detectors.interface import is_acknowledgement, page_of, without_handles
from detectors.masks import MASK
from tests.detectors.reading import json_values, read

HOME = "https://shop.example/home"
TEXT = "shoes hats coats gloves scarves belts socks bags"
CLICK = ("browser_click", {"element": "e42"})


def page(result: str) -> int:
    """The page that a result shows after an interaction that does not scroll."""
    return page_of(result, scrolls=False)


@pytest.mark.parametrize(
    "result",
    [
        f"URL: {HOME}\nTitle: Home\n{TEXT}",
        f"Current URL: {HOME}\n{TEXT}",
        f"### Page state\n- Page URL: {HOME}\n- Page Title: Home\n{TEXT}",
        f"Address: [Home]({HOME})\nViewport position: Showing page 1 of 3.\n{TEXT}",
        f"Tab 0 (current): [Home]({HOME})",
        f"Clicked e42. Now on {HOME}\n{TEXT}",
        f"You are at {HOME}",
        f"Location: <{HOME}>",
        f'{{"title":"Home","url":"{HOME}"}}',
        f'<page url="{HOME}">{TEXT}</page>',
        "Opened page file:///srv/shop/home.html",
    ],
)
def test_pages_are_recognised_in_the_shapes_of_many_agents(result):
    """An address that is named as one is the page."""
    assert page(result) != 0
    assert page(result) == page(f"{result}\nand another hat")


@pytest.mark.parametrize(
    "result", ["", "OK", "Clicked e42", "Title: Home", TEXT, "window: Files", "Page: about:blank", "url: ftp://x"]
)
def test_where_no_address_is_named_there_is_no_page(result):
    """0 is no page: results that name none are not compared by it."""
    assert page(result) == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"URL: {HOME}\nTitle: Home", "URL: https://shop.example/cart\nTitle: Home"),
        (f"URL: {HOME}\nTitle: Home", f"URL: {HOME}\nTitle: Cart (1)"),
        (f"URL: {HOME}?page=1", f"URL: {HOME}?page=2"),
        (f"[Home]({HOME})", f"[Cart]({HOME})"),
        (
            f"[Help](https://help.example)\n(current) [Home]({HOME})",
            f"[Help](https://help.example)\n(current) [Cart]({HOME})",
        ),
        (f"URL: {HOME}\nScroll position: 0", f"URL: {HOME}\nScroll position: 600"),
        (f"URL: {HOME}\nscrollY: 0", f"URL: {HOME}\nscrollY: 600"),
        (f"URL: {HOME}\npixels below: 300", f"URL: {HOME}\npixels below: 900"),
        (f"URL: {HOME}\n0 pixels above, 900 pixels below", f"URL: {HOME}\n600 pixels above, 300 pixels below"),
        (f"URL: {HOME}\nViewport position: page 1 of 3", f"URL: {HOME}\nViewport position: page 2 of 3"),
    ],
    ids=str,
)
def test_another_address_title_or_place_is_another_page(one, other):
    """The same button with the address or position moving on is paging, hence progress (detector specification)."""
    assert page(one) != page(other)


def test_the_rest_of_a_page_makes_no_other_one():
    """Texts of pages are never the same twice: advertisements, times, what is left in stock."""
    assert page(f"URL: {HOME}\nTitle: Home\n3 left") == page(f"URL: {HOME}\nTitle: Home\n2 left\n{TEXT}")


def test_what_scrolls_is_only_compared_where_the_place_is_told():
    """Scrolling without a position may have moved on: nobody can tell, so it is not taken for standing still."""
    assert page_of(f"URL: {HOME}\n{TEXT}", scrolls=True) == 0
    told = f"URL: {HOME}\nScroll position: 600"
    assert page_of(told, scrolls=True) == page(told) != 0


@pytest.mark.parametrize(
    "tree", ["RootWebArea 'Home'", "- button 'Buy' [ref=e42]", "uid=3_17 button", "<hierarchy rotation='0'>", "[12]<a>"]
)
def test_a_page_with_its_tree_is_compared_as_it_is(tree):
    """The tree says whether the page moved, so its address does not stand for it."""
    assert page(f"URL: {HOME}\n{tree}") == 0
    one = read(CLICK, f"URL: {HOME}\n{tree} hats", "ok")
    assert one.key != read(CLICK, f"URL: {HOME}\n{tree} coats", "ok").key


def test_only_the_head_of_a_result_names_its_page():
    """Links far down a page are not where the agent is."""
    assert page(f"{'x ' * 1_600}URL: {HOME}") == 0


@pytest.mark.parametrize(
    ("tool", "arguments", "scrolls"),
    [
        ("browser_click", {"element": "e42"}, False),
        ("goto", {"url": HOME}, False),
        ("browser_type", {"ref": "e7", "text": "hats"}, False),
        ("scroll", {"direction": "down"}, True),
        ("browser_scroll_down", {}, True),
        ("browser_press_key", {"key": "PageDown"}, True),
        ("computer", {"action": "scroll", "coordinate": [3, 4]}, True),
        ("page_down", {}, True),
        ("swipe", {"direction": "up"}, True),
        ("browser_click", {"element": "Next page"}, True),
        ("browser_click", {"element": "Show more"}, True),
        ("browser_take_screenshot", {}, True),
        ("browser_click", {"element": "keyboard"}, False),
        ("browser_click", {"element": "Nextcloud"}, False),
    ],
)
def test_what_moves_on_by_being_repeated(tool, arguments, scrolls):
    """Scrolling, paging, single keys and looking again are no pressing of one button over and over."""
    call = read((tool, arguments), f"URL: {HOME}\n{TEXT}")
    assert call.kind == "interact"
    assert call.scrolls is scrolls
    assert call.operates is not scrolls
    assert (call.page == 0) is scrolls


def test_an_acknowledgement_may_name_the_button_that_moves_on():
    """A click by number says only in its answer that it went to the next page."""
    assert read(("browser_click", {"element": "e42"}), "Clicked the link 'Older posts'").scrolls
    assert not read(("browser_click", {"element": "e42"}), "Clicked the link 'Basket'").scrolls


def test_only_interactions_lead_to_pages():
    """An address that a read or a search shows is content."""
    assert read(CLICK, f"URL: {HOME}").page != 0
    assert read(("grep", {"pattern": "shop"}), f"URL: {HOME}").page == 0
    assert read(("read_file", {"path": "links.md"}), f"[Home]({HOME})").page == 0


def test_structured_pages_are_read_like_their_text():
    """A browser that answers with an object leads somewhere too."""
    one = read(CLICK, {"url": HOME, "title": "Home"})
    assert one.page == read(("browser_click", {"element": "e7"}), {"title": "Home", "url": HOME}).page != 0


ACKNOWLEDGEMENTS = [
    "",
    "OK",
    "done",
    "true",
    "Clicked e42",
    "Typed 'hats' into e7",
    "Navigated",
    "Successfully clicked on the button 'Add to basket' in the middle of the page, as you asked me to",
    "Action performed successfully on the element with the description 'Add to basket' that you gave",
    "✅ Scrolled down the page by the height of one window, which is 720 points on this display",
    "Executed click at (200, 310) on the screen of the phone, which shows the application 'Shop' now",
    "Screenshot saved to shots/3.png",
    "Took a screenshot of the visible part of the page and attached it to this answer for you to see",
    '[{"type": "image", "data": "omitted"}]',
    "[screenshot omitted]",
]


@pytest.mark.parametrize("result", ACKNOWLEDGEMENTS)
def test_mere_words_of_interfaces_are_no_result(result):
    """The screen may have moved on, nobody said: such calls are judged by their action, at higher limits."""
    assert is_acknowledgement(result)
    call = read(CLICK, result)
    assert not call.recorded
    assert not call.empty
    assert call.answer == 0
    assert call.key == read(CLICK, "Clicked").key


@pytest.mark.parametrize("result", [{"ok": True}, {"success": True}, {"status": "success", "clicked": "e42"}], ids=str)
def test_words_in_an_object_are_mere_words_too(result):
    """A protocol that wraps the word that it worked says no more by it."""
    assert not read(CLICK, result).recorded


@pytest.mark.parametrize(
    "result",
    [
        f"Clicked e42. Now on {HOME}",
        f"Clicked e42.\n{TEXT * 7}",
        "RootWebArea 'Home'\n  button 'Buy'",
        "- button 'Buy' [ref=e42]",
        "Element e42 not found",
        "Could not click: e42 is covered",
    ],
)
def test_pages_and_refusals_are_results(result):
    """What shows the page, or says no, is compared like any other result."""
    call = read(CLICK, result)
    assert call.recorded
    assert call.key != read(CLICK, "Clicked").key


@pytest.mark.parametrize("call", [("bash", {"command": "make"}), ("read_file", {"path": "a"}), ("query", {"q": "a"})])
def test_words_of_other_tools_are_results(call):
    """A command that says `done` has said what came of it."""
    assert read(call, "done").recorded


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("button 'Buy' [ref=e42]", "button 'Buy' [ref=e97]"),
        ("uid=3_17 button 'Buy'", "uid=4_17 button 'Buy'"),
        ("  [12] button 'Buy'", "  [31] button 'Buy'"),
        ("button 'Buy', focused", f"button 'Buy'{MASK}"),
        ("Ray ID: 8f3a2b1c9d7e6f50", "Ray ID: 7e6f508f3a2b1c9d"),
    ],
)
def test_handles_are_numbered_anew_on_every_load(one, other):
    """The same page loaded twice is the same result."""
    assert without_handles(one) == without_handles(other)
    shown = [f"URL: {HOME}\nRootWebArea {TEXT}\n{each}" for each in (one, other)]
    assert read(CLICK, shown[0]).key == read(CLICK, shown[1]).key


def test_handles_in_other_results_are_content():
    """Only what interfaces show is freed of handles."""
    one = read(("read_file", {"path": "page.yml"}), "button 'Buy' [ref=e42]")
    assert one.key != read(("read_file", {"path": "page.yml"}), "button 'Buy' [ref=e97]").key


def test_what_is_on_a_page_is_no_handle():
    """Names, values and states of elements are what the agent works on."""
    assert without_handles("button 'Buy' value='3'\nprice [3 left]") == "button 'Buy' value='3'\nprice [3 left]"


@given(st.text() | json_values.map(str), st.booleans())
def test_any_result_is_a_page_or_none(text, scrolls):
    """Nothing that an interface may answer breaks the reading."""
    assert 0 <= page_of(text, scrolls=scrolls) < 2**64
    assert isinstance(is_acknowledgement(text), bool)
    once = without_handles(text)
    assert without_handles(once) == once
