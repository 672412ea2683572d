package sequence_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/lambdaidem/toolkit/internal/browsertest"
	"github.com/lambdaidem/toolkit/internal/sequence"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(browsertest.Closing(m)) }

// open opens the page of a diagram in a browser of the given width, and waits until it is drawn.
// Each test also shows that the page writes nothing to the console: see browsertest.Tab.
func open(t *testing.T, d sequence.Diagram, width int64, scheme string) context.Context {
	t.Helper()
	path := filepath.Join(t.TempDir(), "diagram.html")
	if err := os.WriteFile(path, []byte(html(t, d)), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := browsertest.Tab(t)
	do(ctx, t, chromedp.EmulateViewport(width, 900), preferring(scheme), chromedp.Navigate("file://"+path))
	settle(ctx, t)
	return ctx
}

func do(ctx context.Context, t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// preferring has the browser prefer a color scheme, light or dark.
func preferring(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}

// settle waits until the page has drawn the diagram.
func settle(ctx context.Context, t *testing.T) {
	t.Helper()
	eval[bool](ctx, t, `new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))))`)
}

// eval returns the value of a JavaScript expression in the page.
func eval[T any](ctx context.Context, t *testing.T, expression string) T {
	t.Helper()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// same checks the value of a JavaScript expression in the page.
func same[T any](ctx context.Context, t *testing.T, expression string, want T) {
	t.Helper()
	if diff := cmp.Diff(want, eval[T](ctx, t, expression)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", expression, diff)
	}
}

// texts returns a JavaScript expression for the visible texts of the elements that a selector
// selects, without the texts for screen readers.
func texts(selector string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(%q)].map((e) => {
		const copy = e.cloneNode(true);
		copy.querySelectorAll(".seq-spoken").forEach((hidden) => hidden.remove());
		return copy.textContent.replace(/\s+/g, " ").trim();
	})`, selector)
}

func TestDiagram_EachEventIsARowInTheOrderOfTime(t *testing.T) {
	d := lostReply()
	d.Events = append(d.Events, sequence.Event{At: 61_402_500 * time.Microsecond, From: "c", Kind: sequence.Note, Text: "has waited"})
	slices.Reverse(d.Events) // no two are at the same time
	ctx := open(t, d, 1280, "light")
	same(ctx, t, texts(".seq-name"), []string{"client", "process 1", "process 2", "DynamoDB"})
	same(ctx, t, texts(".seq-row"), []string{
		"0.0 ms 1 client → process 1: POST /payments",
		"1.0 ms 1 process 1: starts",
		"2.0 ms 1 process 1 → DynamoDB: PutItem alice/k0 in progress",
		"4.0 ms 1 process 1: pays",
		"5.0 ms 1 process 1 → DynamoDB: UpdateItem alice/k0 completed",
		"6.0 ms 1 DynamoDB → process 1: applied lost",
		"7.0 ms 1 process 1: is killed",
		"9.0 ms 2 client → process 2: POST /payments again",
		"10.0 ms 2 process 2: <img src=x onerror=alert(1)> was paid twice wrong",
		"61.403 s client: has waited",
	})
	same(ctx, t, texts(".seq-later"), []string{"61.403 s client: has waited"}) // after a pause
	same(ctx, t, `document.querySelectorAll("#diagram img, #diagram b").length`, 0)
}

// A screen reader finds one row for each event, whose name is a sentence, and nothing of the
// drawing. A row that opens is a button.
func TestDiagram_ReadsWellAloud(t *testing.T) {
	ctx := open(t, lostReply(), 1280, "light")
	tree, err := chromedp.Call(ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	var lists []string
	roles := map[string]int{}
	for _, n := range tree.Nodes {
		if n.Ignored || n.Role == nil {
			continue
		}
		role := text(t, n.Role)
		roles[role]++
		if n.Name == nil {
			continue
		}
		name := strings.Join(strings.Fields(text(t, n.Name)), " ")
		if role == "list" && name != "" {
			lists = append(lists, name)
		}
		if (role == "button" || role == "group") && name != "" {
			rows = append(rows, role+" "+strings.ReplaceAll(name, " ,", ",")) // a pause, with or without a space before
		}
	}
	want := []string{
		"button 0.0 ms, request 1, client to process 1: POST /payments",
		"group 1.0 ms, request 1, process 1: starts",
		"button 2.0 ms, request 1, process 1 to DynamoDB: PutItem, record alice/k0 is in progress",
		"group 4.0 ms, request 1, process 1: pays",
		"button 5.0 ms, request 1, process 1 to DynamoDB: UpdateItem, record alice/k0 is completed",
		"group 6.0 ms, request 1, DynamoDB replies to process 1: applied, lost",
		"group 7.0 ms, request 1, process 1: is killed",
		"group 9.0 ms, request 2, client to process 2: POST /payments again",
		"group 10.0 ms, request 2, process 2: <img src=x onerror=alert(1)> was paid twice, wrong",
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("the names of the rows (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Events in the order of time; the arrow keys go from row to row"}, lists); diff != "" {
		t.Errorf("the names of the lists (-want +got):\n%s", diff)
	}
	same(ctx, t, `[...document.querySelectorAll(".seq-heads, .seq-drawing")].every((e) => e.ariaHidden === "true")`, true)
	if roles["listitem"] < len(want) || roles["heading"] != 1 || roles["main"] != 1 {
		t.Errorf("the accessibility tree has %v; want a list item for each event, a heading and a main part", roles)
	}
}

// text returns the text of a value in the accessibility tree.
func text(t *testing.T, v *accessibility.Value) string {
	t.Helper()
	var s string
	if err := json.Unmarshal(v.Value, &s); err != nil {
		t.Fatalf("%s: %v", v.Value, err)
	}
	return s
}

// drawing returns a JavaScript expression for the parts of a row's drawing: the class names, the
// column and the span of each.
func drawing(row int) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".seq-rows .seq-drawing")[%d].querySelectorAll("i")].map((part) => [part.className, ...["--column", "--span"].map((name) => part.style.getPropertyValue(name))].join(" ").trim())`, row)
}

func TestDiagram_DrawsMessagesAndProcesses(t *testing.T) {
	ctx := open(t, lostReply(), 1280, "light")
	// The columns: client 0, process 1 1, process 2 2, DynamoDB 3.
	for row, want := range [][]string{
		{"seq-line 0 1", "seq-tip", "seq-mark 0"},
		{"seq-bar seq-begins 1", "seq-mark 1"},
		{"seq-bar 1", "seq-line 1 2", "seq-tip", "seq-mark 1"},
		{"seq-bar 1", "seq-mark 1"},
		{"seq-bar 1", "seq-line 1 2", "seq-tip", "seq-mark 1"},
		{"seq-bar 1", "seq-line seq-leftward 1 2", "seq-cross", "seq-mark 3"},
		{"seq-bar seq-ends 1", "seq-mark 1"},
		{"seq-line 0 2", "seq-tip", "seq-mark 0"},
		{"seq-mark 2"},
	} {
		same(ctx, t, drawing(row), want)
	}
}

// A lost message ends before the column of its target.
func TestDiagram_LostMessageEndsBeforeItsTarget(t *testing.T) {
	ctx := open(t, lostReply(), 1280, "light")
	const end = `(() => {
		const row = document.querySelectorAll(".seq-event")[%d];
		const box = row.querySelector(".seq-line").getBoundingClientRect();
		const target = document.querySelectorAll(".seq-symbol")[1].getBoundingClientRect();
		return Math.abs(box.left - (target.left + target.width / 2));
	})()`
	if distance := eval[float64](ctx, t, fmt.Sprintf(strings.Replace(end, ".seq-event", ".seq-rows .seq-event", 1), 5)); distance < 15 {
		t.Errorf("the lost reply ends %v pixels from its target", distance)
	}
	same(ctx, t, `getComputedStyle(document.querySelector(".seq-rows .seq-lost .seq-line")).borderTopStyle`, "dashed")
	same(ctx, t, `getComputedStyle(document.querySelector(".seq-rows .seq-call .seq-line")).borderTopStyle`, "solid")
}

func TestDiagram_Keyboard(t *testing.T) {
	ctx := open(t, lostReply(), 1280, "light")
	const focused = `[...document.querySelectorAll(".seq-row")].indexOf(document.activeElement)`
	const open = `document.querySelectorAll(".seq-detail").length`
	for _, step := range []struct {
		key       string
		focused   int
		open      int
		modifiers []chromedp.Modifier
	}{
		{kb.Tab, -1, 0, nil}, // how to read the diagram
		{kb.Tab, 0, 0, nil},
		{kb.ArrowUp, 0, 0, nil},
		{kb.ArrowDown, 1, 0, nil},
		{kb.ArrowDown, 2, 0, nil},
		{kb.Enter, 2, 1, nil},
		{kb.ArrowDown, 3, 1, nil},
		{kb.Enter, 3, 1, nil}, // has nothing to show
		{kb.Escape, 3, 1, nil},
		{kb.ArrowUp, 2, 1, nil},
		{kb.Escape, 2, 0, nil},
		{kb.Escape, 2, 0, nil},
		{kb.Enter, 2, 1, nil},
		{kb.Enter, 2, 0, nil},
		{kb.Home, 0, 0, nil},
		{kb.End, 8, 0, nil},
		{kb.ArrowDown, 8, 0, nil},
		{kb.ArrowUp, 8, 0, []chromedp.Modifier{kb.ModifierCtrl}}, // the browser's own
		{kb.ArrowUp, 8, 0, []chromedp.Modifier{kb.ModifierAlt}},
		{kb.ArrowUp, 8, 0, []chromedp.Modifier{kb.ModifierMeta}},
	} {
		do(ctx, t, chromedp.KeyEvent(step.key, chromedp.KeyModifiers(step.modifiers...)))
		if got := eval[int](ctx, t, focused); got != step.focused {
			t.Errorf("after %q row %d has the focus, want row %d", step.key, got, step.focused)
		}
		if got := eval[int](ctx, t, open); got != step.open {
			t.Errorf("after %q %d rows are open, want %d", step.key, got, step.open)
		}
	}
	same(ctx, t, `getComputedStyle(document.activeElement).outlineStyle`, "solid")
	same(ctx, t, `[...document.querySelectorAll(".seq-row")].map((row) => row.tabIndex)`, []int{-1, -1, -1, -1, -1, -1, -1, -1, 0})
	for key, scrolls := range map[string]bool{"ArrowUp": false, "PageUp": true} {
		press := fmt.Sprintf(`document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: %q, bubbles: true, cancelable: true}))`, key)
		same(ctx, t, press, scrolls)
	}
	do(ctx, t, chromedp.KeyEvent(kb.Tab))
	same(ctx, t, focused, -1) // Tab leaves the list
}

func TestDiagram_DetailShowsTheBodyAndWhatChanged(t *testing.T) {
	d := lostReply()
	d.Events[2].Detail = "only if attribute_not_exists(id)"
	ctx := open(t, d, 1280, "light")
	const row = `document.querySelectorAll(".seq-row")[%d]`
	for _, c := range []struct {
		row  int
		want []string
	}{
		{0, []string{`{"amount": "</script><b>5</b>"}`}},
		{4, []string{"alice/k0 after this eventstatusCOMPLETED was INPROGRESSattempt1"}},
		{2, []string{"alice/k0 after this eventstatusINPROGRESS newattempt1 newonly if attribute_not_exists(id)"}},
	} {
		button := fmt.Sprintf(row, c.row)
		same(ctx, t, button+`.getAttribute("aria-expanded")`, "false")
		eval[any](ctx, t, button+`.click()`)
		same(ctx, t, button+`.getAttribute("aria-expanded")`, "true")
		same(ctx, t, texts(".seq-detail"), c.want)
		eval[any](ctx, t, button+`.click()`)
		same(ctx, t, button+`.getAttribute("aria-expanded")`, "false")
		same(ctx, t, texts(".seq-detail"), []string{})
	}
}

// A row's detail compares the record with the previous row that changed the same record.
func TestDiagram_DetailComparesWithTheRecordBefore(t *testing.T) {
	d := sequence.Diagram{Parties: []sequence.Party{{ID: "db", Name: "DynamoDB", Kind: sequence.Database}}}
	change := func(id string, fields ...sequence.Field) {
		d.Events = append(d.Events, sequence.Event{From: "db", Kind: sequence.Note, Text: "changes", Record: &sequence.Record{ID: id, Title: id, State: sequence.InProgress, Fields: fields}})
	}
	change("a", sequence.Field{Name: "status", Value: "1"})
	change("a", sequence.Field{Name: "status", Value: "2"}, sequence.Field{Name: "steps", Value: "s"})
	change("b", sequence.Field{Name: "status", Value: "7"})
	change("a", sequence.Field{Name: "status", Value: "3"})
	change("a")
	ctx := open(t, d, 1280, "light")
	eval[any](ctx, t, `document.querySelectorAll(".seq-row").forEach((row) => row.click())`)
	same(ctx, t, texts(".seq-detail tr"), []string{
		"status1 new",
		"status2 was 1", "stepss new",
		"status7 new",
		"status3 was 2", "stepsremoved, was s",
		"statusremoved, was 3",
	})
}

// A row with nothing to show is no button, and has no chevron. The chevron turns when a row opens.
func TestDiagram_OnlyRowsWithMoreToShowOpen(t *testing.T) {
	ctx := open(t, lostReply(), 1280, "light")
	const chevrons = `[...document.querySelectorAll(".seq-row .seq-text")].map((text) => getComputedStyle(text, "::before")).map((s) => s.content === "none" ? "" : s.rotate)`
	same(ctx, t, `[...document.querySelectorAll(".seq-row")].map((row) => row.localName)`,
		[]string{"button", "div", "button", "div", "button", "div", "div", "div", "div"})
	same(ctx, t, chevrons, []string{"45deg", "", "45deg", "", "45deg", "", "", "", ""})
	eval[any](ctx, t, `document.querySelectorAll(".seq-row").forEach((row) => row.click())`)
	same(ctx, t, chevrons, []string{"135deg", "", "135deg", "", "135deg", "", "", "", ""})
	same(ctx, t, `document.querySelectorAll(".seq-detail").length`, 3)
	same(ctx, t, `document.querySelectorAll("div[aria-expanded]").length`, 0)
}

// A click on an arrow is a click on its row.
func TestDiagram_ArrowOpensItsRow(t *testing.T) {
	ctx := open(t, lostReply(), 1280, "light")
	for _, open := range []int{1, 0} {
		at := eval[[]float64](ctx, t, `(({left, top, width}) => [left + width / 2, top + 1])(document.querySelectorAll(".seq-rows .seq-line")[1].getBoundingClientRect())`)
		do(ctx, t, chromedp.MouseClickXY(at[0], at[1]))
		same(ctx, t, `document.querySelectorAll(".seq-rows > :nth-child(3) > .seq-detail").length`, open)
		same(ctx, t, `document.querySelectorAll(".seq-detail").length`, open)
	}
}

// What changed is whole words beside its value, and a value is on the baseline of its name.
func TestDiagram_ChangesAreReadable(t *testing.T) {
	d := lostReply()
	d.Events[2].Record.Fields = append(d.Events[2].Record.Fields, sequence.Field{Name: "in_progress_expiration", Value: strings.Repeat("0123456789", 20)})
	for _, width := range []int64{1280, 700, 400} {
		ctx := open(t, d, width, "light")
		eval[any](ctx, t, `document.querySelectorAll(".seq-row")[2].click()`)
		same(ctx, t, `[...document.querySelectorAll(".seq-change")].map((change) => {
			const text = document.createRange();
			text.selectNodeContents(change);
			return change.textContent + ", lines: " + text.getClientRects().length;
		})`, []string{"new, lines: 1", "new, lines: 1", "new, lines: 1"})
		narrowest := eval[float64](ctx, t, `Math.min(...[...document.querySelectorAll(".seq-detail td")].map((td) => td.getBoundingClientRect().width))`)
		if narrowest < 150 {
			t.Errorf("on a screen of %d pixels the values have %v pixels", width, narrowest)
		}
		if width < 1280 {
			continue
		}
		same(ctx, t, `[...document.querySelectorAll(".seq-detail tr")].map((tr) => {
			const [name, value] = [...tr.cells].map((cell) => {
				const probe = document.createElement("i"); // has no text, so its bottom is on the baseline
				probe.style.display = "inline-block";
				cell.prepend(probe);
				return probe.getBoundingClientRect().bottom;
			});
			return Math.abs(name - value) < 1;
		})`, []bool{true, true, true})
	}
}

// The rows of the request that has the focus stand out.
func TestDiagram_ShowsTheRowsOfARequest(t *testing.T) {
	ctx := open(t, lostReply(), 1280, "light")
	const standOut = `[...document.querySelectorAll(".seq-rows .seq-event")].map((item, i) => item.classList.contains("seq-same") ? i : -1).filter((i) => i >= 0)`
	same(ctx, t, standOut, []int{})
	eval[any](ctx, t, `document.querySelectorAll(".seq-row")[7].focus()`)
	same(ctx, t, standOut, []int{7, 8})
}

//go:embed testdata/contrast.js
var contrast string

func TestDiagram_ContrastOfEveryText(t *testing.T) {
	d := lostReply()
	for _, state := range []sequence.State{sequence.InProgress, sequence.Completed, sequence.Released, sequence.Held, sequence.Deleted, "another"} {
		d.Events = append(d.Events, sequence.Event{From: "db", Kind: sequence.Note, Text: "changes", Request: string(state), Record: &sequence.Record{ID: "r", Title: "alice/k0", State: state}})
	}
	for i := range 12 { // the hues of requests
		d.Events = append(d.Events, sequence.Event{From: "c", Kind: sequence.Note, Text: "asks", Request: fmt.Sprint(i)})
	}
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			ctx := open(t, d, 1280, scheme)
			eval[any](ctx, t, `document.querySelectorAll(".seq-row")[4].focus(); document.querySelectorAll(".seq-row").forEach((row) => row.click())`)
			var low []string
			texts := eval[[]struct {
				Text  string  `json:"text"`
				Ratio float64 `json:"ratio"`
			}](ctx, t, contrast)
			for _, text := range texts {
				if text.Ratio < 4.5 {
					low = append(low, fmt.Sprintf("%.2f: %q", text.Ratio, text.Text))
				}
			}
			if len(texts) < 100 || len(low) > 0 {
				t.Errorf("of %d texts these have too little contrast:\n%s", len(texts), strings.Join(low, "\n"))
			}
			dark := scheme == "dark"
			same(ctx, t, `(([r, g, b]) => r + g + b < 300)(getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number))`, dark)
		})
	}
}

// crowd returns a diagram with a client, n processes and DynamoDB.
func crowd(n int) sequence.Diagram {
	d := sequence.Diagram{Parties: []sequence.Party{{ID: "c", Name: "client", Kind: sequence.Client}, {ID: "db", Name: "DynamoDB", Kind: sequence.Database}}}
	for i := range n {
		name := fmt.Sprintf("payments, process %d", i+8)
		d.Parties = append(d.Parties, sequence.Party{ID: name, Name: name, Kind: sequence.Process})
		d.Events = append(d.Events,
			sequence.Event{From: "c", To: name, Kind: sequence.Call, Text: "POST /payments"},
			sequence.Event{From: name, To: "db", Kind: sequence.Call, Text: "claims the record", Record: &sequence.Record{ID: "r", Title: "alice/k0", State: sequence.InProgress}})
	}
	return d
}

// No name of a party overlaps another one or breaks, and each is beside its symbol above its column.
func TestDiagram_NamesOfPartiesDoNotCollide(t *testing.T) {
	const collisions = `(() => {
		const names = [...document.querySelectorAll(".seq-head")].map((head) => head.getBoundingClientRect());
		return names.filter((a, i) => names.slice(i + 1).some((b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)).length;
	})()`
	const astray = `[...document.querySelectorAll(".seq-symbol")].filter((symbol, i) => {
		const {left, width} = symbol.getBoundingClientRect();
		const drawing = document.querySelector(".seq-rows .seq-drawing");
		const mark = drawing.appendChild(document.createElement("i"));
		mark.className = "seq-bar";
		mark.style.setProperty("--column", i);
		const bar = mark.getBoundingClientRect();
		mark.remove();
		return Math.abs(left + width / 2 - bar.left - bar.width / 2) > 0.6;
	}).length`
	for _, c := range []struct {
		processes int
		width     int64
		names     []string
		height    float64 // the most that the names may take
	}{
		{1, 1280, []string{"client", "payments, process 8", "DynamoDB"}, 80},
		{3, 1280, []string{"client", "payments, process 8", "9", "10", "DynamoDB"}, 80},
		{6, 1280, []string{"client", "payments, process 8", "9", "10", "11", "12", "13", "DynamoDB"}, 80},
		{3, 400, []string{"client", "payments, process 8", "9", "10", "DynamoDB"}, 80},
		{16, 400, nil, 150},
	} {
		t.Run(fmt.Sprintf("%d processes, %d pixels", c.processes, c.width), func(t *testing.T) {
			ctx := open(t, crowd(c.processes), c.width, "light")
			same(ctx, t, collisions, 0)
			same(ctx, t, astray, 0)
			if c.names != nil {
				same(ctx, t, texts(".seq-name"), c.names)
			}
			if height := eval[float64](ctx, t, `document.querySelector(".seq-heads").getBoundingClientRect().height`); height > c.height {
				t.Errorf("the names are %v pixels high, want at most %v", height, c.height)
			}
		})
	}
}

// The names are placed again when the page gets another width.
func TestDiagram_NamesOfPartiesFollowTheWidth(t *testing.T) {
	ctx := open(t, lostReply(), 1280, "light")
	for _, c := range []struct {
		width int64
		name  string
	}{{1280, "process 2"}, {400, "2"}, {1280, "process 2"}} {
		do(ctx, t, chromedp.EmulateViewport(c.width, 900))
		if _, err := chromedp.Run(ctx, chromedp.Poll[bool](fmt.Sprintf(`document.querySelectorAll(".seq-name")[2].textContent === %q`, c.name))); err != nil {
			t.Errorf("on a screen of %d pixels, process 2 is not called %q: %v", c.width, c.name, err)
		}
	}
}

// A row that gets the focus is not under the names of the parties, which stay in sight.
func TestDiagram_FocusIsNotUnderTheNames(t *testing.T) {
	ctx := open(t, crowd(16), 1280, "light")
	eval[any](ctx, t, `document.querySelectorAll(".seq-row")[31].focus()`)
	for range 31 {
		do(ctx, t, chromedp.KeyEvent(kb.ArrowUp))
		same(ctx, t, `document.activeElement.getBoundingClientRect().top >= document.querySelector(".seq-heads").getBoundingClientRect().bottom`, true)
	}
}

// On a narrow screen, the texts of a row are beside its arrow, and cover no lifeline.
func TestDiagram_NarrowRowsAreBesideTheirArrows(t *testing.T) {
	for _, width := range []int64{400, 700} {
		ctx := open(t, lostReply(), width, "light")
		eval[any](ctx, t, `document.querySelectorAll(".seq-row").forEach((row) => row.click())`)
		same(ctx, t, `[...document.querySelectorAll(".seq-rows .seq-event")].flatMap((item, i) => {
			const box = (selector) => item.querySelector(selector).getBoundingClientRect();
			const [drawing, mark, time] = [".seq-drawing", ".seq-mark", ".seq-time"].map(box);
			const wrong = [];
			if (Math.abs(drawing.height - item.clientHeight) > 1) wrong.push("lifelines are chopped");
			if ((mark.top + mark.bottom) / 2 < time.top || (mark.top + mark.bottom) / 2 > time.bottom) wrong.push("the arrow is not beside the time");
			for (const part of item.querySelectorAll(".seq-time, .seq-request, .seq-text, .seq-record, .seq-detail")) {
				if (part.getBoundingClientRect().left < drawing.right) wrong.push(part.className + " covers the drawing");
			}
			return wrong.map((text) => i + ": " + text);
		})`, []string{})
	}
}

// The legend says what opens, and names the keys.
func TestLegend_ExplainsRowsThatOpenAndTheKeys(t *testing.T) {
	ctx := open(t, lostReply(), 1280, "light")
	same(ctx, t, texts("summary"), []string{"How to read the diagram"})
	same(ctx, t, texts("#legend li"), []string{"a call", "a reply", "lost on the way", "does or notices something", "an effect that cannot be undone", "a process starts", "a process ends", "a row that opens"})
	same(ctx, t, `document.querySelectorAll("#legend li:last-child .seq-chevron").length`, 1)
	same(ctx, t, texts("#legend kbd"), []string{"Enter", "↑", "↓", "Home", "End", "Esc"})
	same(ctx, t, texts("#legend p"), []string{"Click on a row that opens, or press Enter, to see the record, what has changed in it, and the message. " +
		"↑ and ↓ go from row to row, Home and End to the first and the last. Esc closes a row. The rows of the same request stand out."})
}

func TestDiagram_FitsANarrowScreen(t *testing.T) {
	d := lostReply()
	d.Parties[0].Name = strings.Repeat("a long name ", 5)
	for n := range 20 {
		id := fmt.Sprintf("q%d", n)
		d.Parties = append(d.Parties, sequence.Party{ID: id, Name: "process " + id, Kind: sequence.Process})
		d.Events = append(d.Events, sequence.Event{From: id, To: "db", Kind: sequence.Call, Text: strings.Repeat("a long text ", 20)})
	}
	ctx := open(t, d, 400, "light")
	eval[any](ctx, t, `document.querySelectorAll(".seq-row").forEach((row) => row.click())`)
	same(ctx, t, `[...document.querySelectorAll("body *")].filter((e) => !e.closest(".seq-spoken") && e.getBoundingClientRect().right > 400).map((e) => e.className)`, []string{})
	same(ctx, t, `document.documentElement.scrollWidth`, 400)
}

// In a diagram with many processes, processes share columns: a process takes over the column of one
// that has ended and appears in no later event.
func TestDiagram_ManyProcessesShareColumns(t *testing.T) {
	d := sequence.Diagram{Parties: []sequence.Party{{ID: "db", Name: "DynamoDB", Kind: sequence.Database}}}
	for n := range 12 {
		id := fmt.Sprintf("process %d", n)
		d.Parties = append(d.Parties, sequence.Party{ID: id, Name: id, Kind: sequence.Process})
		end := sequence.Event{From: id, Kind: sequence.End, Text: "ends"}
		if n%2 == 0 {
			end = sequence.Event{From: id, To: "db", Kind: sequence.Reply, Text: "ends", Ends: true}
		}
		d.Events = append(d.Events, sequence.Event{From: id, Kind: sequence.Begin, Text: "starts"}, end)
	}
	d.Events = d.Events[:len(d.Events)-1] // the last process does not end
	ctx := open(t, d, 1280, "light")
	same(ctx, t, texts(".seq-name"), []string{"processes", "DynamoDB"})
	same(ctx, t, drawing(1), []string{"seq-bar seq-ends 0", "seq-line 0 1", "seq-tip", "seq-mark 0"})
	same(ctx, t, drawing(2), []string{"seq-bar seq-begins 0", "seq-mark 0"})

	// Process 0 appears once more, so it needs a column of its own.
	eval[any](ctx, t, `diagram.event({at: 3, from: "process 0", to: "db", kind: "call", text: "arrives late"})`)
	settle(ctx, t)
	same(ctx, t, texts(".seq-name"), []string{"process 0", "processes", "DynamoDB"})
	same(ctx, t, drawing(2), []string{"seq-bar seq-begins 1", "seq-mark 1"})

	// Process 11 has not ended when another begins.
	eval[any](ctx, t, `
		diagram.party({id: "another", name: "another", kind: "process"});
		diagram.event({at: 2, from: "another", kind: "begin", text: "starts"});`)
	settle(ctx, t)
	same(ctx, t, texts(".seq-name"), []string{"process 0", "processes", "another", "DynamoDB"})
	same(ctx, t, drawing(23), []string{"seq-bar 1", "seq-bar seq-begins 2", "seq-mark 2"})
}

// A page that shows events as they happen adds parties and events one by one.
func TestDiagram_GrowsAndClears(t *testing.T) {
	ctx := open(t, sequence.Diagram{Title: "live"}, 1280, "light")
	eval[any](ctx, t, `
		diagram.party({id: "db", name: "DynamoDB", kind: "database"});
		diagram.party({id: "c", name: "client", kind: "client"});
		diagram.event({at: 2e6, from: "c", to: "db", kind: "call", text: "second"});
		diagram.event({at: 1e6, from: "c", kind: "note", text: "first", request: "1"});`)
	settle(ctx, t)
	same(ctx, t, drawing(1), []string{"seq-line 0 1", "seq-tip", "seq-mark 0"})
	eval[any](ctx, t, `
		diagram.party({id: "p", name: "process", kind: "process"});
		diagram.event({at: 2e6, from: "p", kind: "note", text: "third"});`)
	settle(ctx, t)
	same(ctx, t, texts(".seq-name"), []string{"client", "process", "DynamoDB"})
	same(ctx, t, texts(".seq-row"), []string{"1.0 ms 1 client: first", "2.0 ms client → DynamoDB: second", "2.0 ms process: third"})
	same(ctx, t, drawing(1), []string{"seq-line 0 2", "seq-tip", "seq-mark 0"})
	same(ctx, t, `document.querySelectorAll(".seq-row[tabindex='0']").length`, 1)
	same(ctx, t, `(() => { try { diagram.event({from: "nobody", kind: "note"}); } catch (e) { return e.message; } })()`, "sequence: no party nobody; call party before event")
	eval[any](ctx, t, `diagram.clear()`)
	settle(ctx, t)
	same(ctx, t, texts(".seq-name, .seq-row"), []string{})
	eval[any](ctx, t, `
		diagram.party({id: "c", name: "client", kind: "client"});
		diagram.event({at: 0, from: "c", kind: "note", text: "again", request: "2"});`)
	same(ctx, t, `document.querySelector(".seq-rows .seq-event").style.getPropertyValue("--hue")`, "211") // the first request's
}
