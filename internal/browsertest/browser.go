// Package browsertest tests pages in a headless Chromium.
//
// A test binary starts at most one browser, for its first [Tab]. The browser ends after the
// last test, if the tests run through [Closing]:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(browsertest.Closing(m)) }
package browsertest

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// patience is the time limit for all actions of one tab together.
const patience = time.Minute

// Tab opens a new tab, whose context is for the actions of package chromedp. The context
// ends after one minute, and the tab closes at the end of the test.
//
// The test fails if the browser does not start. It also fails if at its end the tab's console has
// anything: messages, uncaught exceptions, requests that failed or that a Content-Security-Policy
// refused. Such a request may be the browser's own for /favicon.ico, which it sends unless the page
// has a link to an icon.
func Tab(t testing.TB) context.Context {
	t.Helper()
	browser, err := start()
	if err != nil {
		t.Fatalf("start a browser: %v; install Chromium or Chrome (on Debian, `make browser` does)", err)
	}
	console := &console{}
	tab, closeTab := chromedp.NewContext(browser, chromedp.WithListener(console.listen))
	t.Cleanup(closeTab)
	if err := chromedp.Do(tab); err != nil { // opens the tab
		t.Fatalf("open a tab: %v", err)
	}
	ctx, cancel := context.WithTimeout(tab, patience)
	t.Cleanup(func() {
		defer cancel()
		// The browser sends what the page has written before it sends this result.
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[int]("0")); err != nil {
			t.Errorf("wait for the console: %v", err)
		}
		for _, message := range console.all() {
			t.Errorf("the browser's console: %s", message)
		}
	})
	return ctx
}

// The browser of this test binary.
var (
	start = sync.OnceValues(startBrowser)
	end   = func() {}
)

func startBrowser() (context.Context, error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to run as root in its sandbox
	}
	allocator, endAll := chromedp.NewExecAllocator(context.Background(), options...)
	browser, endBrowser := chromedp.NewContext(allocator)
	end = func() {
		_ = chromedp.Cancel(browser) // lets the browser delete its files; the next calls end it in any case
		endBrowser()
		endAll()
	}
	return browser, chromedp.Do(browser)
}

// Tests are the tests of a package, such as *testing.M.
type Tests interface{ Run() int }

// Closing returns tests that run m and then end the browser.
func Closing(m Tests) Tests { return closing{m} }

type closing struct{ Tests }

func (c closing) Run() int {
	defer func() { end() }()
	return c.Tests.Run()
}
