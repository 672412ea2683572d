package dynamostore

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"sync"
)

// The values of the attribute "encoding" of a completed record, which says how the answer is
// stored. The attribute is absent if the record contains the answer as plain bytes. An older
// version of this package refuses records with an encoding that was added later.
const (
	encodingPlain      = "plain"       // neither compressed nor encrypted, but divided into parts
	encodingGzip       = "gzip"        // compressed in the gzip format (RFC 1952)
	encodingSealed     = "sealed"      // encrypted, not compressed
	encodingSealedGzip = "sealed gzip" // compressed, then encrypted
)

// encodings lists every encoding of an answer that this version can read.
var encodings = [...]string{encodingPlain, encodingGzip, encodingSealed, encodingSealedGzip}

// compress returns the answer compressed, with encodingGzip, or unchanged, with encodingPlain. An
// answer of at least Options.CompressFrom bytes is compressed if the item then is at least 1 KB
// smaller, because a write unit covers 1 KB. The caller encrypts the result, if the store encrypts
// answers.
func (o *Options) compress(answer []byte) (data []byte, encoding string) {
	if len(answer) >= o.CompressFrom {
		if c := compressed(answer); len(c)+encodedOverhead+bytesPerWrite <= len(answer) {
			return c, encodingGzip
		}
	}
	return answer, encodingPlain
}

// gzipWriters caches gzip writers, because a new writer allocates 1.2 MB. The package compresses
// with gzip at level 1 and not with zstd (klauspost/compress 1.18), which would gain too little:
//
//   - At 4 KB and 32 KB of JSON, zstd saves at most one write unit.
//   - At 8 MB of base64, zstd saves 22 ms, but its result is 2.1 MB larger.
//   - zstd adds 393 KB to a binary, which every cold start loads. The gzip writer adds 53 KB.
//
// For 32 KB, gzip at level 6 takes five times as long as at level 1, and saves 0.5 KB.
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

// decompressed decompresses an answer of exactly length bytes. pieces are the compressed bytes, in
// one or more slices. The record may be damaged, so decompressed limits the memory that it uses: it
// returns an error if length is more than maxRatio times the size of the pieces, or if the stream
// continues after length bytes.
func decompressed(pieces [][]byte, length int) ([]byte, error) {
	total := 0
	readers := make([]io.Reader, len(pieces))
	for i, b := range pieces {
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
