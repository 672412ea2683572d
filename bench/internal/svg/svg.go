// Package svg writes the SVG images of the benchmarks. The callers draw the plots.
package svg

import (
	"fmt"
	"strings"
)

// Image is an SVG image that is being written.
type Image struct{ text strings.Builder }

// New begins an image of the given size, in pixels, with a white background. The title is for
// screen readers. It must not contain characters that XML escapes.
func New(width, height int, title string) *Image {
	i := new(Image)
	i.Add(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#222">`,
		width, height, width, height)
	i.Add(`<title>%s</title>`, title)
	i.Add(`<rect width="%d" height="%d" fill="#fff"/>`, width, height)
	return i
}

// Add adds a line of SVG, formatted as by [fmt.Sprintf].
func (i *Image) Add(format string, args ...any) { _, _ = fmt.Fprintf(&i.text, format+"\n", args...) }

// Bytes ends the image and returns it. Images with the same lines have the same bytes.
func (i *Image) Bytes() []byte {
	i.Add(`</svg>`)
	return []byte(i.text.String())
}
