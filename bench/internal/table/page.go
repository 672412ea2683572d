package table

import (
	"bytes"
	"fmt"
	"os"
)

// InsertFile replaces the text between the lines <!-- NAME:begin --> and <!-- NAME:end --> of a
// file. It returns an error, and leaves the file as it is, if the file lacks one of these lines.
func InsertFile(file, name, text string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if page, err = Insert(page, name, text); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, page, 0o644)
}

// Insert returns a copy of a page in which the text between the lines <!-- NAME:begin --> and
// <!-- NAME:end --> is replaced. It returns an error if the page lacks one of these lines.
func Insert(page []byte, name, text string) ([]byte, error) {
	return Replace(page, fmt.Sprintf("<!-- %s:begin -->\n", name), fmt.Sprintf("<!-- %s:end -->\n", name), text)
}

// Replace returns a copy of a page in which the text between two marks is replaced. It returns an
// error if the page lacks one of the marks.
func Replace(page []byte, begin, end, text string) ([]byte, error) {
	before, rest, begun := bytes.Cut(page, []byte(begin))
	_, after, ended := bytes.Cut(rest, []byte(end))
	if !begun || !ended {
		return nil, fmt.Errorf("the page lacks the marks %q and %q", begin, end)
	}
	return []byte(string(before) + begin + text + end + string(after)), nil
}
