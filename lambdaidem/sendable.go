package lambdaidem

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// maxLambdaResponse is the maximum size of a response that Lambda returns, in bytes (AWS
// Lambda, "Lambda quotas": 6 MB for synchronous invocations).
const maxLambdaResponse = 6 << 20

// checkSendable returns an error if a server could not send the response, or if no client
// could read it. It is for responses that an operator writes by hand. A handler's response needs
// no check, because the first caller sees a mistake in it at once.
func checkSendable(r *Response) error {
	if r.Status < 200 || r.Status > 599 {
		return fmt.Errorf("its status is %d; it must be 200 to 599", r.Status)
	}
	body := []byte(r.Body)
	if r.Base64 {
		var err error
		if body, err = base64.StdEncoding.DecodeString(r.Body); err != nil {
			return fmt.Errorf("its body says that it is base64: %w", err)
		}
	}
	for _, headers := range []map[string][]string{r.Header, single(r.fromHeaders), r.trailer} {
		if err := checkHeaders(headers); err != nil {
			return err
		}
	}
	for _, cookie := range r.Cookies {
		if !isHeaderValue(cookie) {
			return fmt.Errorf("it has a cookie %q with a control character, which HTTP can't carry", cookie)
		}
	}
	if !isHeaderValue(r.reason) {
		return fmt.Errorf("its status description %q has a control character, which HTTP can't carry", r.reason)
	}
	if err := checkLength(r, body); err != nil {
		return err
	}
	encodings := contentEncodings(r)
	if len(encodings) > 0 {
		return checkEncoding(encodings, r.Base64, body)
	}
	return checkJSON(r, body)
}

// single returns headers as a map in which each name has a list with its one value.
func single(headers map[string]string) map[string][]string {
	all := make(map[string][]string, len(headers))
	for name, value := range headers {
		all[name] = []string{value}
	}
	return all
}

func checkHeaders(headers map[string][]string) error {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		for _, value := range headers[name] {
			if !isHeaderName(name) || !isHeaderValue(value) {
				return fmt.Errorf("it has a header %q that HTTP can't carry: a name is letters, digits and some punctuation, a value has no control characters", name)
			}
		}
	}
	return nil
}

// isBodiless reports whether a response of this status has no body (RFC 9110, section 6.4.1
// for 204 and 304, section 15.3.6 for 205).
func isBodiless(status int) bool {
	return status == http.StatusNoContent || status == http.StatusResetContent || status == http.StatusNotModified
}

// checkLength returns an error if the length of the body contradicts the status or the
// headers (RFC 9110, sections 6.4.1 and 8.6; RFC 9112, section 6.1).
func checkLength(r *Response, body []byte) error {
	if isBodiless(r.Status) && len(body) > 0 {
		return fmt.Errorf("a response of status %d has no body, and this one has %d bytes", r.Status, len(body))
	}
	if len(r.Body) > maxLambdaResponse {
		return fmt.Errorf("its body has %d bytes; Lambda returns at most 6 MB", len(r.Body))
	}
	if len(valuesOf(r, "Transfer-Encoding")) > 0 {
		return errors.New("it has the header Transfer-Encoding, which only the server may set; leave it out")
	}
	lengths := valuesOf(r, "Content-Length")
	switch {
	case len(lengths) == 0:
		return nil
	case r.Status == http.StatusNoContent:
		return errors.New("a response of status 204 has no Content-Length; leave the header out")
	case r.Status == http.StatusNotModified: // the header has the length that a 200 response would have
		return nil
	}
	for _, length := range lengths {
		if n, err := strconv.ParseUint(length, 10, 63); err != nil || n != uint64(len(body)) {
			return fmt.Errorf("its Content-Length is %q, and its body has %d bytes; leave the header out, the server sets it", length, len(body))
		}
	}
	return nil
}

// contentEncodings returns the content codings of the body in the order in which they were
// applied, except identity (RFC 9110, section 8.4).
func contentEncodings(r *Response) (encodings []string) {
	for _, value := range valuesOf(r, "Content-Encoding") {
		for encoding := range strings.SplitSeq(value, ",") {
			if encoding = strings.ToLower(strings.TrimSpace(encoding)); encoding != "" && encoding != "identity" {
				encodings = append(encodings, encoding)
			}
		}
	}
	return encodings
}

// checkEncoding returns an error if the bytes of the body contradict its Content-Encoding.
// encodings is the result of contentEncodings, with at least one entry, and binary is
// Response.Base64. checkEncoding checks only the last coding, because the bytes don't show the
// codings inside it. An empty body is never an error.
func checkEncoding(encodings []string, binary bool, body []byte) error {
	if len(body) > 0 && !isEncoded(encodings[len(encodings)-1], binary, body) {
		return fmt.Errorf("its Content-Encoding is %q, and its body is not encoded so; leave the header out, or give the encoded body", strings.Join(encodings, ", "))
	}
	return nil
}

// checkJSON returns an error if the body is not JSON although a Content-Type says that it is.
func checkJSON(r *Response, body []byte) error {
	if isBodiless(r.Status) {
		return nil
	}
	for _, value := range valuesOf(r, contentType) {
		if isJSON(value) && !json.Valid(body) {
			return fmt.Errorf("its body is no JSON, although its Content-Type is %s; correct one of them", value)
		}
	}
	return nil
}

// isEncoded reports whether the body can be in the given content coding. For gzip, deflate and
// zstd, isEncoded checks the bytes of the body. For any other coding it returns the parameter
// binary, which is Response.Base64: an encoded body is not text.
func isEncoded(encoding string, binary bool, body []byte) bool {
	switch encoding {
	case "gzip", "x-gzip":
		unzipped, err := gzip.NewReader(bytes.NewReader(body))
		return err == nil && readsWhole(unzipped)
	case "deflate":
		inflated, err := zlib.NewReader(bytes.NewReader(body))
		return err == nil && readsWhole(inflated)
	case "zstd":
		return bytes.HasPrefix(body, []byte{0x28, 0xb5, 0x2f, 0xfd}) // RFC 8878, section 3.1.1
	default:
		return binary
	}
}

// readsWhole reports whether r, which decompresses a body, can be read to its end without an error.
// It returns false if r has 1 GiB or more, because no client would decompress that much.
func readsWhole(r io.Reader) bool {
	const most = 1 << 30
	n, err := io.Copy(io.Discard, io.LimitReader(r, most))
	return err == nil && n < most
}

// valuesOf returns all values of a header of the response. The case of the name does not matter.
// For a REST API, r.fromHeaders may have one more value of a header that is also in r.Header.
// valuesOf returns that value too.
func valuesOf(r *Response, name string) (values []string) {
	for _, headers := range []map[string][]string{r.Header, single(r.fromHeaders)} {
		for _, n := range slices.Sorted(maps.Keys(headers)) {
			if strings.EqualFold(n, name) {
				values = append(values, headers[n]...)
			}
		}
	}
	return values
}

// isHeaderName reports whether HTTP allows name as the name of a header (RFC 9110, section
// 5.1).
func isHeaderName(name string) bool {
	for i := range len(name) {
		if c := name[i]; !isAlphanumeric(c) && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return name != ""
}

// isHeaderValue reports whether HTTP allows value as the value of a header: it must have no
// control characters except tabs (RFC 9110, section 5.5).
func isHeaderValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
