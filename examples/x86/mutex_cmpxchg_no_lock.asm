; The lock of mutex_cmpxchg.asm without the `lock` prefix: loading,
; comparing and storing are no longer one step.
; source: S. Conchon, D. Declerck, F. Zaïdi, Compiling parameterized x86-TSO concurrent programs to
; Cubicle-W, 2017
; expect: sc violated (explicit: undecided), tso violated (explicit: undecided), pso violated (explicit: undecided)

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
         cmpxchg dword [Lock], ebx
         jne acquire
cs:      nop
         mov dword [Lock], 0
         jmp acquire
end thread_code
