package canon

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// hostile returns texts of about size bytes that are as expensive as possible to process. Names are
// out of order, because sorted names cost little. All texts have a canonical form, except those for
// which refused returns true.
func hostile(size int) map[string]string {
	repeat := func(s string) string { return strings.Repeat(s, size/len(s)) }
	array := func(s string) string { return "[" + repeat(s+",") + "0]" }

	// object returns an object with n members. The function name makes their names from the numbers
	// 0 to n-1, in an unsorted order.
	object := func(n int, name func(i int) string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"%s":%d`, name((i*7919+1)%n), i%10)
		}
		return "{" + b.String()[1:] + "}"
	}
	// objects returns an array of about size bytes that repeats an object with n members.
	objects := func(n int, name func(i int) string) string { return array(object(n, name)) }

	// chain returns n nested objects around inner. Each has two members in the wrong order, and the
	// first of them contains the next object.
	chain := func(n int, inner string) string {
		return strings.Repeat(`{"b":`, n) + inner + strings.Repeat(`,"a":0}`, n)
	}
	quoted := func(s string) string { return `"` + repeat(s) + `"` }
	plainName := func(i int) string { return fmt.Sprint("n", i) }

	return map[string]string{
		"arrays opened and closed":    array(`[]`),
		"objects opened and closed":   array(`{}`),
		"deep arrays":                 array(strings.Repeat("[", DefaultDepth-1) + strings.Repeat("]", DefaultDepth-1)),
		"too deep":                    repeat("["),
		"never closed objects":        repeat(`{"a":`),
		"small objects to reorder":    array(`{"b":1,"a":2}`),
		"deep objects to reorder":     array(chain(DefaultDepth-1, "0")),
		"a long value moved by each":  chain(DefaultDepth-1, quoted("x")),
		"an array moved by each":      chain(DefaultDepth-2, array(`{"b":1,"a":2}`)),
		"as many members as allowed":  objects(min(DefaultMembers, size/10), plainName),
		"a million members":           object(size/10, plainName),
		"a long prefix shared":        objects(64, func(i int) string { return strings.Repeat("p", size/256) + fmt.Sprintf("%02d", i) }),
		"many members, long prefix":   objects(min(DefaultMembers, size/64), func(i int) string { return strings.Repeat("p", 48) + plainName(i) }),
		"each name begins another":    objects(256, func(i int) string { return strings.Repeat("p", i) }),
		"almost duplicates by case":   objects(256, func(i int) string { return strings.Repeat("pP", i/2) + fmt.Sprint(i) }),
		"duplicates found at the end": object(size/16, func(i int) string { return fmt.Sprint("n", max(i, 1)) }),
		"folded names":                objects(256, func(i int) string { return "ſKſK" + plainName(i) + "ÄÖÜäöü" }),
		"names of underscores":        objects(256, func(i int) string { return strings.Repeat("_-", 128) + plainName(i) }),
		"names of dots":               objects(256, func(i int) string { return "i" + strings.Repeat("\u0307", 128) + plainName(i) }),
		"one name of underscores":     `{` + quoted("_") + `:1,"a":2}`,
		"names of rare letters":       array(`{"` + strings.Repeat("Ꭰꮤ", 64) + `":1,"Ა":2}`),
		"one long name":               `{` + quoted("Ω") + `:1,"a":2}`,
		"escapes":                     quoted(`\n`),
		"escapes that need none":      quoted(`\u0041`),
		"surrogates":                  quoted(`\ud83d\ude00`),
		"escaped names":               objects(256, func(i int) string { return `\u0041\/` + plainName(i) }),
		"short strings":               array(`""`),
		"a string of four-byte runes": quoted("😀"),
		"a long number":               "1" + repeat("0"),
		"a long fraction":             "1." + repeat("7") + "e" + repeat("9"),
		"white space":                 repeat(" \n\t\r") + "1",
		"white space between":         array(strings.Repeat(" ", 64) + "1"),
	}
}

// refused reports whether the hostile text with this name and size has no canonical form.
func refused(name string, size int) bool {
	switch name {
	case "too deep", "never closed objects", "duplicates found at the end":
		return true
	case "a million members":
		return size/10 > DefaultMembers
	}
	return false
}

// The work beyond the single pass over the text is counted, not timed: comparisons, compared bytes
// of names, and bytes copied to their new position. Each byte is copied once, and each name is
// compared about log2(DefaultMembers) times.
func TestS2_WorkIsLinear(t *testing.T) {
	const perByte = 30
	for _, size := range []int{1 << 12, 1 << 16, 1 << 19} {
		for name, src := range hostile(size) {
			var s scanner
			s.reset([]byte(src), Limits{}.withDefaults())
			ok := s.text()
			if ok == refused(name, size) {
				t.Errorf("%s: %d bytes have a canonical form: %v", name, len(src), ok)
			}
			if ok {
				s.reorder(make([]byte, len(s.spelt)), 0, len(s.spelt), len(s.toReorder))
			}
			if s.cost > perByte*len(src) {
				t.Errorf("%s: %d bytes cost %d steps, more than %d for each", name, len(src), s.cost, perByte)
			}
			if len(s.spelt) > len(src) {
				t.Errorf("%s: the form has %d bytes, more than the %d of the text", name, len(s.spelt), len(src))
			}
			if kept := s.retained(); kept > 10*len(src)+(1<<10) {
				t.Errorf("%s: %d bytes took %d bytes of memory", name, len(src), kept)
			}
		}
	}
}

// The time per byte must not grow with the length of the text. If the algorithm took
// quadratic time, each byte of a text that is 32 times as long would take 32 times as long,
// in every measurement. Other processes can slow down a measurement too, but not all of
// them, so a slow measurement is repeated.
func TestS2_TimeIsLinear(t *testing.T) {
	const small, factor, tolerance, measurements = 8 << 10, 32, 12, 10
	long := hostile(small * factor)
	for name, src := range hostile(small) {
		a, b := nsPerByte(src), nsPerByte(long[name])
		for n := 1; b > tolerance*a && n < measurements; n++ {
			b = min(b, nsPerByte(long[name]))
		}
		if b > tolerance*a {
			t.Fatalf("%s: %.2f ns per byte of %d, but %.2f of %d", name, a, len(src), b, len(long[name]))
		}
	}
}

// nsPerByte returns the time per byte of the fastest of three runs, which is the one that other
// load has disturbed least.
func nsPerByte(text string) float64 {
	src := []byte(text)
	var dst []byte
	best := time.Duration(1 << 62)
	for range 3 {
		start := time.Now()
		dst, _ = Append(dst[:0], src, Limits{})
		best = min(best, time.Since(start))
	}
	return float64(best.Nanoseconds()) / float64(len(src))
}

// The pool keeps neither a scanner that has grown for a large text nor a reference to any text.
func TestS2_LittleMemoryIsRetained(t *testing.T) {
	for _, size := range []int{1 << 10, 3 * maxRetained / 2} {
		for name, src := range hostile(size) {
			Append(nil, []byte(src), Limits{})
			s := scanners.Get().(*scanner)
			if kept := s.retained(); kept > maxRetained {
				t.Errorf("%s: the pool retains %d bytes", name, kept)
			}
			if s.src != nil || s.spelt != nil {
				t.Errorf("%s: the pool retains the text", name)
			}
		}
	}
}

func BenchmarkHostile(b *testing.B) {
	const small, large = 64 << 10, 1 << 20
	long := hostile(large)
	for name, src := range hostile(small) {
		for _, text := range []string{src, long[name]} {
			src := []byte(text)
			b.Run(fmt.Sprintf("%s/%dKB", strings.ReplaceAll(name, " ", "-"), len(src)>>10), func(b *testing.B) {
				b.ReportAllocs()
				var dst []byte
				for b.Loop() {
					dst, _ = Append(dst[:0], src, Limits{})
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(src)), "ns/byte")
			})
		}
	}
}
