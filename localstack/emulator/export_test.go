package emulator

// InLine is how many invocations of a function wait for a slot.
func (e *Emulator) InLine(function string) int {
	p := e.pool(function)
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiters)
}
