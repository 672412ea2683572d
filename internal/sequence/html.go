package sequence

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io"
)

// Files has sequence.js and sequence.css, for servers of pages that draw diagrams.
//
//go:embed sequence.js sequence.css
var Files embed.FS

//go:embed page.html
var pageText string

var page = template.Must(template.New("page.html").Parse(pageText))

// start is the script of a self-contained file: it draws the diagram that the file contains.
const start = `
const {parties, events} = JSON.parse(document.getElementById("data").textContent);
const diagram = sequence.diagram(document.getElementById("diagram"));
parties?.forEach(diagram.party);
events?.forEach(diagram.event);
sequence.legend(document.getElementById("legend"));
`

// WriteHTML writes the diagram as one HTML file that loads nothing. The file's
// Content-Security-Policy allows only the file's own script and style. WriteHTML returns an error if
// two parties have the same ID, a party has none, an event has no From, or an event names a party
// that the diagram does not have. It also returns the errors of w.
//
// Equal diagrams give equal bytes.
func WriteHTML(w io.Writer, d Diagram) error {
	if err := d.check(); err != nil {
		return err
	}
	script, style := read("sequence.js")+start, read("sequence.css")
	return page.Execute(w, map[string]any{
		"Diagram":    d,
		"Script":     template.JS(script), //nolint:gosec // embedded above
		"ScriptHash": hash(script),
		"Style":      template.CSS(style), //nolint:gosec // embedded above
		"StyleHash":  hash(style),
	})
}

// read returns the text of a file in Files.
func read(name string) string {
	text, err := Files.ReadFile(name)
	if err != nil {
		panic(err) // the compiler embeds the file
	}
	return string(text)
}

// hash returns the source expression by which a Content-Security-Policy allows an inline
// script or style: Content Security Policy Level 3, section 2.3.1.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
