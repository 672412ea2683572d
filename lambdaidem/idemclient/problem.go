package idemclient

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
)

// readCode returns the "code" member of a problem document (RFC 9457). It returns "" if the
// response is not a problem document, or if it is encoded, for example compressed. It also returns
// "" if the document is longer than maxProblem, is malformed or has no code. The error comes from
// reading the body.
func readCode(resp *http.Response) (string, error) {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // empty if it is not a valid media type
	if media != "application/problem+json" || resp.Header.Get("Content-Encoding") != "" || resp.Body == nil {
		return "", nil
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem+1))
	read := io.Reader(bytes.NewReader(data))
	if err != nil {
		resp.Body = readCloser{io.MultiReader(read, errorReader{err}), resp.Body}
		return "", err
	}
	resp.Body = readCloser{io.MultiReader(read, resp.Body), resp.Body}
	if len(data) > maxProblem {
		return "", nil
	}
	var doc struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(data, &doc) // a malformed document has no code
	return doc.Code, nil
}

// maxProblem is the maximum size, in bytes, of a problem document whose member "code" is read. A
// guard's problem documents have about 400 bytes.
const maxProblem = 64 << 10

// errorReader is a reader that always fails with err, the error that ended the reading of a body.
type errorReader struct{ err error }

func (f errorReader) Read([]byte) (int, error) { return 0, f.err }
