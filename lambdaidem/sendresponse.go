package lambdaidem

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
)

const contentType = "Content-Type"

// send writes r to w. It applies the header changes in r to the header that outer handlers
// have set. It ignores write errors, which mean that the client has closed the connection.
func send(w http.ResponseWriter, r *Response) {
	header := w.Header()
	for _, name := range r.removed {
		delete(header, name)
	}
	for name, values := range r.Header {
		if slices.Contains(r.added, name) {
			values = append(slices.Clip(header[name]), values...)
		}
		if strings.EqualFold(name, contentType) {
			// Use the spelling "Content-Type". If net/http does not find the header under
			// exactly this name, it adds a Content-Type of its own.
			name = contentType
		}
		header[name] = values
	}
	for _, c := range r.Cookies {
		header.Add("Set-Cookie", c)
	}
	body := []byte(r.Body)
	if r.Base64 {
		if decoded, err := base64.StdEncoding.DecodeString(r.Body); err == nil {
			body = decoded
		}
	}
	if r.Status != http.StatusOK || len(body) == 0 {
		w.WriteHeader(r.Status)
	}
	if len(body) > 0 {
		_, _ = w.Write(body)
	}
	for name, values := range r.trailer {
		if len(values) == 0 {
			delete(header, name)
			continue
		}
		header[name] = values
	}
}
