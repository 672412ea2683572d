package main

import "testing"

// limit is the most that the guard may add to a binary, in percent. docs/performance.md has the
// measured figure, and says what it consists of.
const limit = 13

func TestSize_WhatTheGuardAddsToABinary(t *testing.T) {
	folder := t.TempDir()
	s, err := measure(t.Context(), folder, "arm64")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("bare %d bytes, guarded %d bytes: the guard adds %.2f %%", s.bare, s.guarded, s.percent())
	if s.percent() <= limit {
		return
	}
	t.Errorf("the guard adds %.2f %% to a handler's binary; the limit is %v %%. Use go build -ldflags=-dumpdep to find out what refers to a package that should not be there", s.percent(), limit)
	added, err := addedByPackage(t.Context(), folder, "arm64")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range added {
		t.Logf("%9d %s", p.bytes, p.name)
	}
}

func TestSize_PackageOfASymbol(t *testing.T) {
	for symbol, want := range map[string]string{
		"net/http.(*Client).Do": "net/http",
		"runtime.mallocgc":      "runtime",
		"github.com/hashicorp/golang-lru/v2/simplelru.(*LRU[string,*a/b.c]).Add": "github.com/hashicorp/golang-lru/v2/simplelru",
		"slices.SortFunc[go.shape.[]a/b.c]":                                      "slices",
		"gopkg.in/yaml%2ev3.Marshal":                                             "gopkg.in/yaml.v3",
		"type:*a/b.c":                                                            "the linker's",
	} {
		if got := packageOf(symbol); got != want {
			t.Errorf("%s is of %s; want %s", symbol, got, want)
		}
	}
}
