; A lock taken with `lock cmpxchg`.
; source: S. Conchon, D. Declerck, F. Zaïdi, Compiling parameterized x86-TSO concurrent programs to
; Cubicle-W, 2017
; expect: sc holds (explicit: undecided), tso holds (explicit: undecided), pso holds (explicit: undecided)

begin shared_data
    Lock dd 0
end shared_data

begin unsafe_prop
    eip[$t1] = cs && eip[$t2] = cs
end unsafe_prop

begin init_code
    start_threads
end init_code

begin thread_code
acquire: mov eax, 0
         mov ebx, 1
         lock cmpxchg dword [Lock], ebx
         jne acquire
cs:      nop
         mov dword [Lock], 0
         jmp acquire
end thread_code
