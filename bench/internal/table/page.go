package table

import (
	"bytes"
	"fmt"
)

// Insert returns a page with the text in place of what is between the lines <!-- NAME:begin -->
// and <!-- NAME:end -->. It returns an error if the page lacks one of these lines.
func Insert(page []byte, name, text string) ([]byte, error) {
	begin, end := fmt.Sprintf("<!-- %s:begin -->\n", name), fmt.Sprintf("<!-- %s:end -->\n", name)
	before, rest, begun := bytes.Cut(page, []byte(begin))
	_, after, ended := bytes.Cut(rest, []byte(end))
	if !begun || !ended {
		return nil, fmt.Errorf("the page lacks the marks %q and %q", begin, end)
	}
	return []byte(string(before) + begin + text + end + string(after)), nil
}
