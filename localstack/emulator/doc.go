// Package emulator runs the Lambda functions of a SAM template on this
// machine: the bootstrap binaries that deploy, under an emulated Lambda Runtime
// API, behind an emulated API Gateway and the Lambda Invoke API.
//
// As in Lambda, a process handles one invocation at a time, is kept warm for
// the next one, is killed at its function's timeout and is replaced when it
// crashed. As nowhere in Lambda, tokens are not verified: the emulator is for
// local use and listens on loopback only.
//
// EMULATOR.md says what is imitated and what is not. The package needs a POSIX
// system (Linux, macOS): it starts functions by /bin/sh, so that they die with
// the emulator even when that is killed.
package emulator
