package dynamostore

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"sync"
)

// The values of the attribute "encoding" of a completed record. The attribute says how the
// answer is stored. It is absent if the record contains the answer as plain bytes.
//
// A version of this package refuses a record with an encoding that it does not know, instead of
// replaying bytes that it can't interpret. The first versions know no encodings, so they refuse
// every record that has this attribute.
const (
	encodingPlain      = "plain"       // neither compressed nor encrypted, but divided into parts
	encodingGzip       = "gzip"        // compressed in the gzip format (RFC 1952)
	encodingSealed     = "sealed"      // encrypted, not compressed
	encodingSealedGzip = "sealed gzip" // compressed, then encrypted
)

// encodings lists every encoding of an answer that this version can read.
var encodings = [...]string{encodingPlain, encodingGzip, encodingSealed, encodingSealedGzip}

// compress returns the answer compressed, if that saves a write unit, and otherwise unchanged. The
// encoding is encodingGzip or encodingPlain. The caller encrypts the result afterwards, if the
// store encrypts answers.
//
// An answer of less than Options.CompressFrom bytes is not compressed. A larger answer is
// compressed if that makes the item at least 1 KB smaller. A write unit covers 1 KB, so the write
// then costs at least one unit less, whatever the size of the rest of the item.
func (o *Options) compress(answer []byte) (stored []byte, encoding string) {
	if len(answer) >= o.CompressFrom {
		if c := compressed(answer); len(c)+encodedOverhead+bytesPerWrite <= len(answer) {
			return c, encodingGzip
		}
	}
	return answer, encodingPlain
}

// gzipWriters caches gzip writers, because a new writer allocates 1.2 MB.
//
// The package compresses with gzip at level 1 (gzip.BestSpeed) and not with zstd
// (klauspost/compress 1.18), because zstd would gain too little. The table has the times and the
// compressed sizes for JSON answers of several sizes. The times are medians on amd64 with Go 1.26.
// "First use" means the first use in a process.
//
//	                     gzip, level 1        gzip, level 6    zstd, fastest
//	3.9 KB               23 µs, 892 bytes     846 bytes        17 µs, 841 bytes
//	32 KB                0.18 ms, 5.4 KB      0.9 ms, 4.9 KB   0.09 ms, 4.8 KB
//	1 MB                 8.4 ms, 195 KB       18 ms, 171 KB    3.9 ms, 168 KB
//	8 MB, base64 of
//	6 MB of noise        40 ms, 6.3 MB        168 ms, 6.3 MB   18 ms, 8.4 MB (1)
//	decompress 32 KB     0.12 ms                               0.04 ms
//	first use, 4 KB      0.16 ms                               0.22 ms
//	first use, 4 KB,
//	and decompress       0.20 ms                               0.27 ms
//	added to a binary    +53 KB (2)                            +393 KB
//
// (1) By default, zstd does not compress this answer. If the compression of literals is enabled,
// zstd takes 68 ms, and the result has 6.3 MB.
//
// (2) This is only the writer of gzip. The reader adds nothing, because the SDK already links it.
//
// At 4 KB and 32 KB, zstd saves at most one write unit. At 8 MB, it saves 22 ms, but its result has
// 2.1 MB more. That does not justify another dependency, and a third of a megabyte more to load in
// every cold start.
var gzipWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
	if err != nil { // can't happen: the level is valid
		panic(err)
	}
	return w
}}

// compressed returns the answer in the gzip format.
func compressed(answer []byte) []byte {
	var buf bytes.Buffer
	buf.Grow(len(answer)/4 + 64)
	w, _ := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	w.Reset(&buf)
	_, err := w.Write(answer)
	if err = errors.Join(err, w.Close()); err != nil { // can't happen: a bytes.Buffer accepts every write
		panic(err)
	}
	return buf.Bytes()
}

// maxRatio is the maximum compression factor of DEFLATE, the algorithm of gzip: one
// compressed byte decompresses to at most 1032 bytes (zlib.net, "Maximum Compression
// Factor"). A record that claims a longer answer is damaged.
const maxRatio = 1032

// decompressed decompresses an answer of exactly length bytes, which is stored in one or
// more parts. The record may be damaged, so decompressed limits the memory that it
// allocates: it returns an error if length is more than maxRatio times the stored bytes, or
// if the stream continues after length bytes.
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
	// Try to read one more byte, to reach the end of the stream: gzip verifies its checksum only
	// there.
	switch n, err := io.ReadFull(r, make([]byte, 1)); {
	case n > 0:
		return nil, fmt.Errorf("it goes on after its %d bytes", length)
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return answer, nil
}
