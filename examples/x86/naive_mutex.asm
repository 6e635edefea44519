; The lock of naive_mutex_deadlock.asm, but who is not alone takes the announcement back and tries
; again. Nobody waits for ever, and it is as wrong as before.
; source: S. Conchon, D. Declerck, F. Zaïdi, Compiling parameterized x86-TSO concurrent programs to
; Cubicle-W, 2017
; expect: sc violated (explicit: undecided), tso violated (explicit: undecided), pso violated (explicit: undecided)

begin shared_data
    Waiting dd 0
    Busy    dd 0
end shared_data

begin unsafe_prop
    eip[$t1] = cs && eip[$t2] = cs
end unsafe_prop

begin init_code
    start_threads
end init_code

begin thread_code
enter: inc dword [Waiting]
       cmp dword [Waiting], 1
       jne retry
       cmp dword [Busy], 0
       jne retry
       mov dword [Busy], 1
cs:    nop
       mov dword [Busy], 0
retry: dec dword [Waiting]
       jmp enter
end thread_code
