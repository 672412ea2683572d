//go:build !linux

package main

import "errors"

func onProcessors(int) (leave func() error, err error) {
	return nil, errors.New("a process can be kept on some processors on Linux alone")
}
