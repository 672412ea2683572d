package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Collector takes documents out of a log, and adds up what they say. The zero value
// is ready; it is safe for concurrent use.
type Collector struct {
	mu    sync.Mutex
	since Totals
}

// Take returns what came since the last Take.
func (c *Collector) Take() *Totals {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.since
	c.since = Totals{}
	return &taken
}

// Log returns a writer for functions' logs, whole lines at a time: documents are
// collected, and everything else goes on to w. What stands before a document's first
// brace, such as the name of the function that wrote it, is not read. A line that is
// meant to be a document, but that CloudWatch would refuse, goes on with the reason
// before it. With keep the documents go on too.
func (c *Collector) Log(w io.Writer, keep bool) io.Writer {
	return &logWriter{c, w, keep}
}

type logWriter struct {
	collector *Collector
	w         io.Writer
	keep      bool
}

func (l *logWriter) Write(p []byte) (int, error) {
	rest := make([]byte, 0, len(p))
	for line := range bytes.Lines(p) {
		prefix, body := splitPrefix(line)
		doc, err := Parse(body)
		switch {
		case err == nil:
			l.collector.add(doc)
			if !l.keep {
				continue
			}
		case !errors.Is(err, ErrNoDocument):
			rest = fmt.Appendf(rest, "%sCloudWatch would make no metrics of this: %v\n", prefix, err)
		}
		rest = append(rest, line...)
	}
	if len(rest) == 0 {
		return len(p), nil
	}
	if _, err := l.w.Write(rest); err != nil {
		return 0, err
	}
	return len(p), nil
}

// splitPrefix cuts what a log has put before a JSON object.
func splitPrefix(line []byte) (prefix, body []byte) {
	brace := bytes.IndexByte(line, '{')
	if brace < 0 {
		return line, nil
	}
	return line[:brace], line[brace:]
}

func (c *Collector) add(doc Document) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range doc.Data {
		c.since.Add(d)
	}
}
