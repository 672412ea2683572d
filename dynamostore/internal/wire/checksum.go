package wire

import (
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
)

// damage returns an error if the body does not match the checksum in the header. It returns
// nil if there is no checksum.
func (h *HTTP) damage(header http.Header, body []byte) error {
	want := first(header, fieldChecksum)
	if !h.checksums || want == "" {
		return nil
	}
	return mismatch(want, crc32.ChecksumIEEE(body))
}

// fieldChecksum is the header field with the CRC-32 of a response's body. DynamoDB Local
// sends it only if the request succeeded.
const fieldChecksum = "X-Amz-Crc32"

// first is like h.Get, but name must already be in canonical form. This makes it faster.
func first(h http.Header, name string) string {
	if values := h[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

func mismatch(want string, got uint32) error {
	if n, err := strconv.ParseUint(want, 10, 32); err != nil || uint32(n) != got {
		return fmt.Errorf("the answer is damaged: its CRC-32 is %d, and %s says %q", got, fieldChecksum, want)
	}
	return nil
}

// checkedBody is a response's body that verifies its checksum. If the checksum is wrong,
// Read returns an error at the end of the body instead of io.EOF. (The SDK also verifies
// the checksum, but it only logs a mismatch.)
type checkedBody struct {
	body io.ReadCloser
	want string
	sum  hash.Hash32
}

func (b *checkedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	_, _ = b.sum.Write(p[:n])
	if errors.Is(err, io.EOF) {
		if damaged := mismatch(b.want, b.sum.Sum32()); damaged != nil {
			err = damaged
		}
	}
	return n, err //nolint:wrapcheck // io.EOF is to be found as it is
}

func (b *checkedBody) Close() error { return b.body.Close() } //nolint:wrapcheck // the body's own
