package dynamostore

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"sync"
)

// The encodings of a stored answer. A version that does not know one refuses
// the item; so does every version before there were any.
const (
	encodingPlain = "plain" // the answer itself, over parts
	encodingGzip  = "gzip"  // RFC 1952
	// One of these two, then encrypted.
	encodingSealed     = "sealed"
	encodingSealedGzip = "sealed gzip"
)

// encodings are all of them.
var encodings = [...]string{encodingPlain, encodingGzip, encodingSealed, encodingSealedGzip}

// gzip at its best speed, not zstd (klauspost/compress 1.18). Measured on
// amd64, Go 1.26, medians, bytes of a stored JSON answer in and out:
//
//	                     gzip, level 1        gzip, level 6    zstd, fastest
//	3.9 KB               23 µs, 892 bytes     846 bytes        17 µs, 841 bytes
//	32 KB                0.18 ms, 5.4 KB      0.9 ms, 4.9 KB   0.09 ms, 4.8 KB
//	1 MB                 8.4 ms, 195 KB       18 ms, 171 KB    3.9 ms, 168 KB
//	8 MB, base64 of
//	6 MB of noise        40 ms, 6.3 MB        168 ms, 6.3 MB   18 ms, 8.4 MB: nothing gained
//	                                          or, told to look at literals, 68 ms, 6.3 MB
//	decode 32 KB         0.12 ms                               0.04 ms
//	first use, 4 KB      0.16 ms, both 0.20                    0.22 ms, both 0.27
//	bytes of a program   +53 KB: the SDK                       +393 KB
//	                     links the reader
//
// What differs by a write unit or none at 4 KB and 32 KB, and by 80 ms at most
// at 8 MB, does not pay for a dependency and for a third of a megabyte in every
// cold start. A writer is 1.2 MB to make and is kept for the next answer.
var gzipWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
	if err != nil { // the level is valid: can't happen
		panic(err)
	}
	return w
}}

func compressed(answer []byte) []byte {
	var buf bytes.Buffer
	buf.Grow(len(answer)/4 + 64)
	w, _ := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	w.Reset(&buf)
	_, err := w.Write(answer)
	if err = errors.Join(err, w.Close()); err != nil { // into memory: can't happen
		panic(err)
	}
	return buf.Bytes()
}

// maxRatio is DEFLATE's: no byte of it becomes more (zlib.net, "Maximum
// Compression Factor", 1032). A length above it is no length of ours.
const maxRatio = 1032

// decompressed reads exactly length bytes, and no more of a stream that would
// go on: what is stored may be damaged, and is not to fill the memory.
func decompressed(stored [][]byte, length int) ([]byte, error) {
	total := 0
	readers := make([]io.Reader, len(stored))
	for i, b := range stored {
		total += len(b)
		readers[i] = bytes.NewReader(b)
	}
	if length/maxRatio > total {
		return nil, fmt.Errorf("%d bytes can't become %d", total, length)
	}
	r, err := gzip.NewReader(io.MultiReader(readers...))
	if err != nil {
		return nil, err
	}
	answer := make([]byte, length)
	if n, err := io.ReadFull(r, answer); err != nil {
		return nil, fmt.Errorf("after %d of %d bytes: %w", n, length, err)
	}
	// The end of the stream is where gzip's own checksum is verified.
	switch n, err := io.ReadFull(r, make([]byte, 1)); {
	case n > 0:
		return nil, fmt.Errorf("it goes on after its %d bytes", length)
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return answer, nil
}
