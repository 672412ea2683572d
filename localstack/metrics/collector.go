package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Collector extracts documents from logs and adds up their metrics. The zero value is ready for
// use. A Collector is safe for concurrent use.
type Collector struct {
	mu    sync.Mutex
	since Totals
}

// Take returns the totals of the documents since the last call of Take, or since the beginning.
func (c *Collector) Take() *Totals {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.since
	c.since = Totals{}
	return &taken
}

// Log returns a writer for the logs of functions. Each Write must contain whole lines. The writer
// collects the documents and writes all other lines to w. It ignores text before the first brace
// of a line, such as the name of the function that wrote it. Before a line that is meant to be a
// document but that CloudWatch would refuse, it writes a line with the reason to w. If keep is
// true, it writes documents to w too.
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

// splitPrefix splits a line at its first brace. body is nil if the line has none.
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
