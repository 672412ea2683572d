package window_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/lambdaidem/toolkit/internal/browsertest"
)

// tab is the page in a browser. Its methods fail the test.
type tab struct {
	*testing.T
	ctx context.Context
}

func open(t *testing.T) tab {
	t.Helper()
	_, page := running(t)
	b := tab{t, browsertest.Tab(t)}
	if err := chromedp.Do(b.ctx, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(page)); err != nil {
		t.Fatal(err)
	}
	return b
}

// click clicks the only button that a CSS selector selects.
func (b tab) click(selector string) {
	b.Helper()
	if err := chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS(selector))); err != nil {
		b.Fatalf("click %s: %v", selector, err)
	}
}

// holds waits until a condition in JavaScript is true. In it, rows is the text of the
// diagram's rows, and status the text above the diagram.
func (b tab) holds(condition string) {
	b.Helper()
	expression := fmt.Sprintf(`(() => {
		const rows = [...document.querySelectorAll("#diagram .seq-row")].map((row) => row.textContent).join("\n");
		const status = document.querySelector("#status").textContent;
		return Boolean(%s);
	})()`, condition)
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression)); err != nil {
		rows, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.querySelector("#status").textContent + "\n" + [...document.querySelectorAll("#diagram .seq-row")].map((row) => row.textContent).join("\n")`))
		b.Fatalf("%s: %v; the page shows:\n%s", condition, err, rows)
	}
}

// is evaluates JavaScript.
func (b tab) is(expression string) string {
	b.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](expression))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return text
}

// A newcomer plays a story by one click, reads what to look for, and reloads the page.
func TestBrowser_StoriesPlayByOneClickAndOutliveAReload(t *testing.T) {
	b := open(t)
	b.click(`[data-story="dies"]`)
	b.holds(`status.startsWith("Playing: Kills the process")`)
	b.holds(`/Waiting for the lease to end, and then repeating the request: \d s/.test(document.querySelector("#countdown").textContent) && !document.querySelector("#countdown").hidden`)
	b.holds(`document.querySelector('[data-story="twice"]').getAttribute("aria-disabled") === "true"`)
	b.click(`[data-story="twice"]`)
	b.holds(`document.querySelector("#refusal").textContent === "A story is being played: wait for its end."`)
	b.click("#clear") // refused too
	for _, button := range []string{`[data-fault="kill"]`, `[data-action="send"]`, `[data-action="repeat"]`} {
		b.holds(fmt.Sprintf(`document.querySelector('%s').getAttribute("aria-disabled") === "true"`, button))
	}
	b.holds(`document.querySelector("#clear").getAttribute("aria-disabled") === "true"`)
	b.holds(`status.startsWith("Look: The dead process leaves a locked record behind.")`)
	b.holds(`/runs the handler[^]*has run the handler, and dies[^]*is killed[^]*Lambda.*500[^]*409 idempotency_in_progress[^]*the lease of key dies-\d+ of POST \/payments is over: the record is dead[^]*takes the record over.*in progress[^]*stores the answer.*completed[^]*201 Created/.test(rows)`)
	b.holds(`document.querySelector("#countdown").hidden`)
	b.holds(`/^Key dies-\d+ of POST \/payments: the handler ran twice, 12.50 EUR were charged once\. alice has /.test(document.querySelector("#sum").textContent)`)
	if err := chromedp.Do(b.ctx, chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	b.holds(`/is killed[^]*takes the record over[^]*201 Created/.test(rows) && status.startsWith("Look: The dead process")`)
	b.click(`[data-story="twice"]`) // in a new diagram
	b.holds(`/201 Createdlost|201 Created, lost/.test(rows) && /the first answer again/.test(rows) && !/is killed/.test(rows) && status.includes("done twice")`)
	b.click(`#diagram li:nth-child(3) button`)
	b.holds(`/only if attribute_not_exists\(id\)[^]*attempt/.test(document.querySelector(".seq-detail").textContent)`)
}

// Every control does what it says.
func TestBrowser_EveryControlWorks(t *testing.T) {
	b := open(t)
	b.click("#clear")
	b.holds(`rows === "" && !document.querySelector("#empty").hidden`)
	b.is(`document.querySelector("#key").value = "order-9"; ""`)
	b.click(`[data-action="send"]`)
	b.holds(`/key order-9[^]*201 Created/.test(rows) && status !== ""`)
	if err := chromedp.Do(b.ctx, chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	b.holds(`document.querySelector("#key").value === "order-10"`) // a reload brings no used key back
	b.is(`document.querySelector("#key").value = "order-9"; ""`)
	b.click("#new-key")
	b.holds(`document.querySelector("#key").value === "order-10"`)
	b.click("#clear")
	b.holds(`rows === ""`)
	b.click(`[data-action="send"]`)
	b.holds(`/POST \/payments, key order-10[^]*in progress[^]*completed[^]*201 Created/.test(rows) && document.querySelector("#empty").hidden && status.startsWith("Look: There was no record")`)
	b.click(`[data-action="repeat"]`)
	b.holds(`/the first answer again/.test(rows) && status.startsWith("Look: The lock is refused")`)
	b.click(`[data-action="other"]`)
	b.holds(`/422 idempotency_payload_mismatch/.test(rows) && status.startsWith("Look: The fingerprint")`)
	b.click(`[data-action="fifty"]`)
	b.holds(`/50 requests: 0 got the handler's answer, 50 the stored answer/.test(rows) && status.startsWith("Look: 50 requests: 0")`)

	// The first new row is in sight, however long the diagram is.
	b.is(`globalThis.posts = () => [...document.querySelectorAll("#diagram li")].filter((row) => /client .*POST/.test(row.textContent));
		scrollTo(0, 0); globalThis.before = posts().length; ""`)
	b.click(`[data-action="repeat"]`)
	b.holds(`(() => {
		const row = posts()[globalThis.before];
		return row && row.getBoundingClientRect().top >= 0 && row.getBoundingClientRect().bottom <= innerHeight && scrollY > 0;
	})()`)

	// What to look for stays in sight, beside the first rows of a long diagram and beside the last.
	for _, row := range []string{"first", "last"} {
		b.is(`document.querySelector("#diagram li:` + row + `-child").scrollIntoView({block: "center"}); ""`)
		b.holds(`["#status", "#sum"].every((name) => {
			const {top, bottom, height} = document.querySelector(name).getBoundingClientRect();
			return height > 0 && top >= 0 && bottom <= innerHeight;
		})`)
	}

	// It covers no row that gets the focus.
	b.is(`document.querySelector("#diagram li").scrollIntoView();
		globalThis.topOf = (element) => element.getBoundingClientRect().top;
		[...document.querySelectorAll(".seq-row")].find((row) => topOf(row) > topOf(document.querySelector("#told"))).focus(); ""`)
	b.holds(`document.activeElement.getBoundingClientRect().bottom <= document.querySelector("#told").getBoundingClientRect().top`)

	// The form is sent by Enter, with the policy of a transfer.
	b.holds(`document.querySelector("#policy-field").hidden`)
	b.is(`document.querySelector("#sample").value = "transfer"; document.querySelector("#sample").dispatchEvent(new Event("change")); ""`)
	b.holds(`!document.querySelector("#policy-field").hidden`)
	b.is(`document.querySelector("#policy").value = "hold"; document.querySelector("#form").requestSubmit(); ""`)
	b.holds(`/POST \/transfers, key order-10/.test(rows) && document.body.dataset.busy === "false"`)
	b.is(`document.querySelector("#sample").value = "payment"; ""`)

	for _, fault := range []string{"lock", "completion", "response"} {
		b.click("#clear")
		b.holds(`rows === ""`)
		b.click("#new-key")
		button := fmt.Sprintf(`[data-fault=%q]`, fault)
		b.click(button)
		b.holds(fmt.Sprintf(`document.querySelector('%s').getAttribute("aria-pressed") === "true"`, button))
		b.holds(fmt.Sprintf(`document.querySelector("#armed").textContent === "On for the next chance: " + document.querySelector('%s').textContent + "."`, button))
		b.click(`[data-action="send"]`)
		b.holds(`/201 Created/.test(rows) && /lost/.test(rows) && document.body.dataset.busy === "false"`)
		b.holds(fmt.Sprintf(`document.querySelector('%s').getAttribute("aria-pressed") === "false"`, button))
		b.holds(`document.querySelector("#armed").hidden`)
	}
	for _, fault := range []string{"kill", "late"} { // played elsewhere
		for _, pressed := range []string{"true", "false"} {
			b.click(fmt.Sprintf(`[data-fault=%q]`, fault))
			b.holds(fmt.Sprintf(`document.querySelector('[data-fault=%q]').getAttribute("aria-pressed") === %q`, fault, pressed))
		}
	}

	if got := b.is(`[...document.querySelectorAll("[aria-describedby]")].filter((e) => !document.getElementById(e.getAttribute("aria-describedby"))?.textContent).length + " undescribed"`); got != "0 undescribed" {
		t.Error(got)
	}
	if got := b.is(`[...document.querySelectorAll("input, select, textarea")].filter((e) => !e.labels.length).length + " unlabeled"`); got != "0 unlabeled" {
		t.Error(got)
	}
}

// Among the rows of fifty requests, a button finds the one that runs the handler. The controls stay in
// sight beside a long diagram, and nothing in their column is cut.
func TestBrowser_LongDiagramIsEasyToUse(t *testing.T) {
	b := open(t)
	b.holds(`document.querySelector("#find").hidden`)
	b.click(`[data-story="fifty"]`)
	b.holds(`status.startsWith("Look: 50 requests") && !document.querySelector("#find").hidden`)
	b.click("#find")
	b.holds(`/: runs the handler$/.test(document.activeElement.textContent.trim())`)
	b.is(`globalThis.inSight = (element) => element.getBoundingClientRect().top >= 0 && element.getBoundingClientRect().bottom <= innerHeight; ""`)
	b.holds(`inSight(document.activeElement)`)
	b.is(`document.querySelector("#diagram li:last-child").scrollIntoView(); ""`)
	b.holds(`scrollY > 3000 && inSight(document.querySelector("#sample"))`)
	b.is(`document.querySelector('[data-fault="late"]').scrollIntoView({block: "nearest"}); ""`)
	b.holds(`scrollY > 3000 && inSight(document.querySelector('[data-fault="late"]'))`)

	b.holds(`(() => {
		const select = document.querySelector("#sample");
		const text = document.createElement("canvas").getContext("2d");
		text.font = getComputedStyle(select).font;
		return [...select.options].every((option) => text.measureText(option.text).width < select.clientWidth - 36); // beside its arrow
	})()`)
	b.is(`for (const box of document.querySelectorAll(".controls details")) box.open = true; ""`)
	b.holds(`["#curl", "#operator"].every((name) => document.querySelector(name).scrollWidth <= document.querySelector(name).clientWidth)`)
	b.is(`Object.defineProperty(navigator, "clipboard", {value: {writeText: async (text) => { globalThis.copied = text; }}}); ""`)
	b.click(`[data-copy="curl"]`)
	b.holds(`globalThis.copied.startsWith("curl -i -X POST") && document.querySelector('[data-copy="curl"]').textContent === "Copied"`)

	for _, fault := range []string{"lock", "completion", "response"} {
		button := fmt.Sprintf(`document.querySelector('[data-fault=%q]')`, fault)
		b.is(`globalThis.height = ` + button + `.offsetHeight; ""`)
		for _, pressed := range []string{"true", "false"} {
			b.click(fmt.Sprintf(`[data-fault=%q]`, fault))
			b.holds(fmt.Sprintf(`%s.getAttribute("aria-pressed") === %q && %s.offsetHeight === globalThis.height`, button, pressed, button))
		}
	}
}

// On a phone's width, nothing is wider than the page.
func TestBrowser_NarrowPageDoesNotScrollSideways(t *testing.T) {
	b := open(t)
	if err := chromedp.Do(b.ctx, chromedp.EmulateViewport(400, 800)); err != nil {
		t.Fatal(err)
	}
	b.click(`[data-story="other"]`)
	b.holds(`/422 idempotency_payload_mismatch/.test(rows) && status.startsWith("Look:") && document.body.dataset.busy === "false"`)
	if got := b.is(`String(document.documentElement.scrollWidth)`); got != "400" {
		wide := b.is(`[...document.querySelectorAll("*")].filter((e) => e.getBoundingClientRect().right > 401).map((e) => e.tagName + "." + e.className).slice(0, 10).join(" ")`)
		t.Errorf("the page is %s pixels wide: %s", got, strings.TrimSpace(wide))
	}
}
