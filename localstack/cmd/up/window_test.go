package main

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/lambdaidem/toolkit/internal/browsertest"
)

// playInWindow opens the page that the guide names, sends an order by the free form, and
// plays a story with that order.
func playInWindow(t *testing.T, guide string) {
	t.Helper()
	page := regexp.MustCompile(`in a browser\.\n\n  (http://127\.0\.0\.1:\d+)\n`).FindStringSubmatch(guide)
	if page == nil {
		t.Fatalf("the guide does not name the page:\n%s", guide)
	}
	ctx := browsertest.Tab(t)
	if err := chromedp.Do(ctx, chromedp.Navigate(page[1])); err != nil {
		t.Fatal(err)
	}
	shows := func(pattern string) {
		t.Helper()
		const rows = `[...document.querySelectorAll("#diagram li button")].map((row) => row.textContent).join("\n")`
		if _, err := chromedp.Run(ctx, chromedp.Poll[bool](fmt.Sprintf(`/%s/.test(%s)`, pattern, rows))); err != nil {
			text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](rows))
			t.Fatalf("the diagram does not show %s: %v\n%s", pattern, err, text)
		}
	}
	fill := `
		const route = [...document.querySelector("#route").options].find((option) => option.text === "POST /orders (OrdersFunction)");
		document.querySelector("#route").value = route.value;
		document.querySelector("#route").dispatchEvent(new Event("change"));
		document.querySelector("#body").value = '{"pizzas":1}';
		document.querySelector("#key").value = "window-1";
		document.querySelector("#path").value`
	if path, err := chromedp.Run(ctx, chromedp.Evaluate[string](fill)); err != nil || path != "/orders" {
		t.Fatalf("the path of the route is %q, %v", path, err)
	}
	click := func(selector string) {
		t.Helper()
		if err := chromedp.Do(ctx, chromedp.Click(chromedp.CSS(selector))); err != nil {
			t.Fatalf("click %s: %v", selector, err)
		}
	}
	click(`[data-action="send"]`)
	shows(`orders, process \d+.*POST \/orders, key window-1[^]*locks the record[^]*in progress[^]*stores the answer[^]*completed[^]*201 Created`)
	click(`[data-action="other"]`)
	shows(`422 idempotency_payload_mismatch`)
	click(`[data-story="twice"]`)
	shows(`key twice-\d+[^]*201 Created[^]*lost[^]*the first answer again`)
}
