; A first try at a lock: announce yourself, wait until you are the only
; one, then mark the section busy. Two threads whose announcements are both seen wait for ever;
; worse, one announcement may get lost, and then both come in.
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
alone: cmp dword [Waiting], 1
       jne alone
       cmp dword [Busy], 0
       jne alone
       mov dword [Busy], 1
cs:    nop
       mov dword [Busy], 0
       dec dword [Waiting]
       jmp enter
end thread_code
