package browsertest

import (
	"fmt"
	"slices"
	"sync"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// console collects the messages that a tab's console would show.
type console struct {
	mu       sync.Mutex
	messages []string
}

// listen receives every event of the tab.
func (c *console) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		message := string(e.Type)
		for _, arg := range e.Args {
			message += fmt.Sprintf(" %s%s", arg.Value, arg.Description)
		}
		c.add(message)
	case *runtime.EventExceptionThrown:
		c.add((&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
	case *log.EventEntryAdded:
		c.add(fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	}
}

func (c *console) add(message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.messages = append(c.messages, message)
}

func (c *console) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.messages)
}
